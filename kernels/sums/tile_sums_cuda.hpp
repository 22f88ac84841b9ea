#pragma once

/// @file
/// What comes after the first pass of a sum in reduce.hpp's order on a device. Internal to this
/// folder and its tests.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "kernels/sums/reduce.hpp"

namespace weir::cuda {

/// What becomes of a sum: factor * (sum / divisor). By default the sum itself, to the bit.
struct Finish {
  float divisor = 1.0F;
  float factor = 1.0F;
};

/// Tiles that `count` terms make. The sum of no terms is that of one empty tile.
[[nodiscard]] constexpr std::size_t tiles_of(std::size_t count) {
  return count == 0 ? 1 : (count - 1) / kSumTile + 1;
}

/// Adds up what the tiles gave, in order, in scratch memory of a fixed size: half of it holds sums
/// of tiles; when it is full, its sums become a few of the next pass in the rest.
class TileSums {
 public:
  /// `scratch`: device memory, at least 4 * kSumTile elements, aligned to 16 bytes. Good for
  /// scratch.size() / 4 * kSumTile tiles: a workspace for 2^38 terms, a tebibyte of them.
  TileSums(const char* name, cudaStream_t stream, std::span<float> scratch);

  /// How many tiles' sums fit at once; a whole number of kSumTile.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Where the next `tiles` sums, at most capacity(), are to be written by the caller's next launch
  /// on the stream. All but the last call must be for the same number, which divides capacity().
  [[nodiscard]] float* next(std::size_t tiles);

  /// out[0] = the finished sum of all that was written. To be called once, at the end.
  void finish(Finish finish, float* out);

 private:
  void fold();

  const char* name_;
  cudaStream_t stream_;
  std::size_t capacity_;
  std::span<float> sums_;    ///< of tiles
  std::span<float> folded_;  ///< of the next pass, and behind them those of the ones after it
  std::size_t used_ = 0;
  std::size_t folded_used_ = 0;
};

}  // namespace weir::cuda
