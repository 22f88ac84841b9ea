#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"

namespace weir {

void fill(std::span<float> out, float value) { std::fill(out.begin(), out.end(), value); }

void add(std::span<const float> x, std::span<float> total) {
  require_elements({"add", "x"}, x.size(), total.size());
  for (std::size_t i = 0; i < total.size(); ++i) total[i] += x[i];
}

void scale(float alpha, std::span<float> x) {
  for (float& value : x) value *= alpha;
}

namespace {

constexpr std::size_t kTileBlocks = 64;
constexpr std::size_t kTileSize = 4 * kTileBlocks;

template <typename T>
using Lane = std::array<T, kTileBlocks>;

/// Draws the numbers with indices 4 * block ... 4 * block + kTileSize - 1. One array for each of
/// the four words, so that the compiler can vectorise over neighbouring blocks.
void draw_tile(std::uint64_t seed, std::uint64_t stream, std::uint64_t block, float* out) {
  alignas(64) std::array<Lane<std::uint32_t>, 4> words;
  for (std::size_t j = 0; j < kTileBlocks; ++j) {
    const PhiloxWords drawn = normal_words(seed, stream, block + j);
    words[0][j] = drawn.x;
    words[1][j] = drawn.y;
    words[2][j] = drawn.z;
    words[3][j] = drawn.w;
  }
  alignas(64) std::array<Lane<float>, 4> normal;
  for (std::size_t half = 0; half < 4; half += 2) {
    for (std::size_t j = 0; j < kTileBlocks; ++j) {
      const FloatPair pair = normal_pair(words[half][j], words[half + 1][j]);
      normal[half][j] = pair.first;
      normal[half + 1][j] = pair.second;
    }
  }
  for (std::size_t j = 0; j < kTileBlocks; ++j) {
    for (std::size_t i = 0; i < 4; ++i) out[4 * j + i] = normal[i][j];
  }
}

}  // namespace

void require_numbers(std::uint64_t first, std::size_t count) {
  if (first <= UINT64_MAX - count) return;
  throw UsageError("fill_normal: first index " + std::to_string(first) + " and " +
                   std::to_string(count) + " elements pass the end of the stream at 2^64");
}

void fill_normal(std::uint64_t seed, std::uint64_t stream, std::span<float> out,
                 std::uint64_t first) {
  require_numbers(first, out.size());
  std::size_t skip = first % 4;
  for (std::uint64_t block = first / 4; !out.empty(); block += kTileBlocks, skip = 0) {
    if (skip == 0 && out.size() >= kTileSize) {
      draw_tile(seed, stream, block, out.data());
      out = out.subspan(kTileSize);
      continue;
    }
    std::array<float, kTileSize> tile;
    draw_tile(seed, stream, block, tile.data());
    const std::size_t count = std::min(out.size(), kTileSize - skip);
    std::copy_n(tile.begin() + static_cast<std::ptrdiff_t>(skip), count, out.begin());
    out = out.subspan(count);
  }
}

}  // namespace weir
