#pragma once

// Operations on each element alone. Products and sums are rounded to float separately, never fused,
// so every device that does the same gives the same bits.
//
// Throws UsageError and leaves the output unchanged if sizes differ. Thread-safe for disjoint
// outputs. An input may be the output's span, but must not overlap it partly.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/parts/philox.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/parts/stream.hpp"

namespace weir {

/// out[i] = value.
void fill(std::span<float> out, float value);

/// total[i] += x[i].
void add(std::span<const float> x, std::span<float> total);

/// x[i] *= alpha.
void scale(float alpha, std::span<float> x);

// Random tensors. A number depends on its place alone: not on the device, nor on what is filled
// first.

/// The four normal numbers with indices 4 * block ... 4 * block + 3 of a stream: words x, y of the
/// draw give the first two, words z, w the last two.
struct NormalBlock {
  FloatPair front;
  FloatPair back;
};

/// The counter is (block low, block high, stream low, stream high), the key (seed low, seed high).
[[nodiscard]] WEIR_HOST_DEVICE constexpr PhiloxWords normal_words(std::uint64_t seed,
                                                                  std::uint64_t stream,
                                                                  std::uint64_t block) noexcept {
  return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U),
                     static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32U)},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
}

[[nodiscard]] WEIR_HOST_DEVICE inline NormalBlock normal_block(std::uint64_t seed,
                                                               std::uint64_t stream,
                                                               std::uint64_t block) noexcept {
  const PhiloxWords words = normal_words(seed, stream, block);
  return {normal_pair(words.x, words.y), normal_pair(words.z, words.w)};
}

/// Fills `out` with independent numbers of N(0, 1). `out[i]` depends only on (seed, stream, first +
/// i), so a tensor may be filled in pieces, in any order. Different streams of one seed, and
/// different seeds, are independent.
///
/// Throws UsageError if first + out.size() exceeds 64 bits. Thread-safe.
void fill_normal(std::uint64_t seed, std::uint64_t stream, std::span<float> out,
                 std::uint64_t first = 0);

/// Throws UsageError unless a stream has `count` numbers from `first` on.
void require_numbers(std::uint64_t first, std::size_t count);

}  // namespace weir

/// On a device: see stream.hpp.
namespace weir::cuda {

void fill(Stream stream, std::span<float> out, float value);
void add(Stream stream, std::span<const float> x, std::span<float> total);
void scale(Stream stream, float alpha, std::span<float> x);

/// The same on a device: see stream.hpp.
void fill_normal(Stream stream, std::uint64_t seed, std::uint64_t random_stream,
                 std::span<float> out, std::uint64_t first = 0);

}  // namespace weir::cuda
