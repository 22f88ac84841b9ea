#include "trainer/checkpoint/checksum.hpp"

#include <zlib.h>

namespace weir {

// zlib's, since a table of bytes would take longer than the disk.
void Checksum::add(std::span<const std::byte> bytes) noexcept {
  value_ = static_cast<std::uint32_t>(
      crc32_z(value_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace weir
