#include "tools/timeline/snapshot/pickle.hpp"

#include <limits>

namespace weir::timeline {

void Pickle::put_little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFFU);
}

void Pickle::put(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  if (number >= 0 && number < 0x100) {
    bytes_ += 'K';
    put_little_endian(bits, 1);
  } else if (number >= 0 && number < 0x10000) {
    bytes_ += 'M';
    put_little_endian(bits, 2);
  } else if (number >= std::numeric_limits<std::int32_t>::min() &&
             number <= std::numeric_limits<std::int32_t>::max()) {
    bytes_ += 'J';
    put_little_endian(bits & 0xFFFFFFFFU, 4);
  } else {
    bytes_ += '\x8A';
    bytes_ += '\x08';
    put_little_endian(bits, 8);
  }
}

void Pickle::put(std::string_view text) {
  const auto [place, fresh] = texts_.try_emplace(std::string(text), 0);
  if (!fresh) return recall(place->second);
  bytes_ += 'X';
  put_little_endian(text.size(), 4);
  bytes_ += text;
  place->second = remember();
}

std::uint32_t Pickle::remember() {
  const std::uint32_t place = remembered_++;
  const bool small = place < 0x100;
  bytes_ += small ? 'q' : 'r';
  put_little_endian(place, small ? 1 : 4);
  return place;
}

void Pickle::recall(std::uint32_t place) {
  const bool small = place < 0x100;
  bytes_ += small ? 'h' : 'j';
  put_little_endian(place, small ? 1 : 4);
}

}  // namespace weir::timeline
