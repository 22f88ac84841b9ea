#pragma once

/// @file
/// The passes after the first of a sum in reduce.hpp's order on a device. Internal to this folder
/// and its tests.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "kernels/sums/reduce.hpp"

namespace weir::cuda {

/// The final operation on a sum: factor * (sum / divisor). By default the sum itself, to the bit.
struct Finish {
  float divisor = 1.0F;
  float factor = 1.0F;
};

/// Returns the number of tiles of `count` terms. No terms make one empty tile.
[[nodiscard]] constexpr std::size_t tiles_of(std::size_t count) {
  return count == 0 ? 1 : (count - 1) / kSumTile + 1;
}

/// Adds up the tiles' sums, in order, in scratch memory of a fixed size. Half of it holds tiles'
/// sums; when full, they are reduced to a few of the next pass in the rest.
class TileSums {
 public:
  /// `scratch`: device memory of at least 4 * kSumTile elements, aligned to 16 bytes. Enough for
  /// scratch.size() / 4 * kSumTile tiles: a workspace serves 2^38 terms, a tebibyte.
  TileSums(const char* name, cudaStream_t stream, std::span<float> scratch);

  /// Returns how many tiles' sums fit at once; a multiple of kSumTile.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Returns where the caller's next launch on the stream must write the next `tiles` sums, at most
  /// capacity(). All calls but the last must pass the same number, which divides capacity().
  [[nodiscard]] float* next(std::size_t tiles);

  /// out[0] = the finished sum of all that was written. Call once, at the end.
  void finish(Finish finish, float* out);

 private:
  void fold();

  const char* name_;
  cudaStream_t stream_;
  std::size_t capacity_;
  std::span<float> sums_;    ///< of tiles
  std::span<float> folded_;  ///< of the next pass, followed by those of later passes
  std::size_t used_ = 0;
  std::size_t folded_used_ = 0;
};

}  // namespace weir::cuda
