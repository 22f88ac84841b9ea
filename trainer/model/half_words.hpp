#pragma once

// 16-bit numbers in a tensor, which holds floats: two in each, in the order of memory; the last
// float of an odd number of them is half unused.

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir {

/// Returns the floats that hold `count` words.
[[nodiscard]] constexpr std::size_t half_word_floats(std::size_t count) noexcept {
  return (count + 1) / 2;
}
/// Returns the first `count` words, which must be there.
[[nodiscard]] inline std::span<const std::uint16_t> half_words(std::span<const float> floats,
                                                               std::size_t count) noexcept {
  return {reinterpret_cast<const std::uint16_t*>(floats.data()), count};
}
[[nodiscard]] inline std::span<std::uint16_t> half_words(std::span<float> floats,
                                                         std::size_t count) noexcept {
  return {reinterpret_cast<std::uint16_t*>(floats.data()), count};
}

}  // namespace weir
