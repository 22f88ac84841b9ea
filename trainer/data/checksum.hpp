#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir {

/// The CRC-32 of gzip and PNG over bytes that come in pieces. zlib's, since a table of bytes would
/// take longer than the disk.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    value_ = static_cast<std::uint32_t>(
        crc32_z(value_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }
  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace weir
