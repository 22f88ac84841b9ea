#include "tools/timeline/page/pack.hpp"

#include <zlib.h>

#include <new>

namespace weir::timeline {
namespace {

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
}

[[nodiscard]] std::uint64_t zigzag(std::uint64_t difference) {
  const std::uint64_t sign = (difference >> 63U) != 0 ? ~std::uint64_t{0} : 0;
  return (difference << 1U) ^ sign;
}

[[nodiscard]] std::string deflate(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  // zlib's types are unsigned char and unsigned long.
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()),
                6) != Z_OK) {
    throw std::bad_alloc();
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8U | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out.push_back(k <= part.size() ? kDigits[bits >> (18U - 6U * k) & 0x3FU] : '=');
    }
  }
  return out;
}

std::string pack(std::span<const std::vector<std::int64_t>> columns) {
  std::string raw;
  for (const std::vector<std::int64_t>& column : columns) {
    std::uint64_t before = 0;
    for (const std::int64_t value : column) {
      append_varint(raw, zigzag(static_cast<std::uint64_t>(value) - before));
      before = static_cast<std::uint64_t>(value);
    }
  }
  return base64(deflate(raw));
}

}  // namespace weir::timeline
