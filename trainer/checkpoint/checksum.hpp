#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir {

/// The CRC-32 of gzip and PNG over bytes that come in pieces.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace weir
