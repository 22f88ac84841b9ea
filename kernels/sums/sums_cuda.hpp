#pragma once

/// @file
/// Sums in reduce.hpp's order on a device: the kernel in which one warp adds up one tile, the
/// passes after the first, sums of a term for each row, and sums that one warp computes on the fly.
/// For the kernels' sources and their tests.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/same_bits.hpp"
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

#if defined(__CUDACC__) || defined(WEIR_LAUNCH_IS_EMULATED)

static_assert(kSumLanes == kWarpLanes, "the lanes of the order are the lanes of a warp");

/// Float4s of a tile.
inline constexpr unsigned kTileFours = kSumTile / 4;

/// The terms x[0], x[1], ...
struct ElementTerms {
  const float* x;

  __device__ float one(std::size_t i) const { return x[i]; }
  __device__ float4 four(std::size_t i) const { return *reinterpret_cast<const float4*>(x + i); }
};

/// sums[t] = the finished sum of tile t of the terms 0 ... count - 1, for each of `tiles` tiles.
///
/// Terms are a structure with `one(i)`, and `four(i)` for the terms i ... i + 3 by 16-byte
/// accesses, used if `aligned`. A lane's terms are 32 apart but it loads 4 at a time, so the tile
/// goes through shared memory. These kernels have no barrier for a single warp, so all warps of a
/// block run the loop together.
template <typename Terms>
__global__ void sum_tiles_kernel(Terms terms, bool aligned, std::size_t count, std::size_t tiles,
                                 float* sums, Finish finish) {
  __shared__ float4 staged[kBlockWarps * kTileFours];
  const unsigned lane = threadIdx.x % kWarpLanes;
  const unsigned warp = threadIdx.x / kWarpLanes;
  float4* const fours = staged + warp * kTileFours;
  float* const ones = reinterpret_cast<float*>(fours);
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlockWarps;
  for (std::size_t first = static_cast<std::size_t>(blockIdx.x) * kBlockWarps; first < tiles;
       first += stride) {
    const std::size_t tile = first + warp;
    const std::size_t begin = tile * kSumTile;
    if (aligned && begin + kSumTile <= count) {
      for (unsigned i = lane; i < kTileFours; i += kWarpLanes) {
        fours[i] = terms.four(begin + 4 * static_cast<std::size_t>(i));
      }
    } else {
      for (unsigned i = lane; i < kSumTile; i += kWarpLanes) {
        ones[i] = begin + i < count ? terms.one(begin + i) : 0.0F;
      }
    }
    __syncthreads();
    float total = 0;
    for (unsigned i = lane; i < kSumTile; i += kWarpLanes) total += ones[i];
    total = fold_lanes(total);
    if (lane == 0 && tile < tiles) sums[tile] = finish.factor * (total / finish.divisor);
    __syncthreads();
  }
}

/// Enqueues the sums of all tiles of the terms.
template <typename Terms>
void launch_tiles(const char* name, cudaStream_t stream, Terms terms, bool aligned,
                  std::size_t count, float* sums, Finish finish = {}) {
  const std::size_t tiles = tiles_of(count);
  launch(name, sum_tiles_kernel<Terms>, grid_for(tiles, kBlockWarps), stream, terms, aligned, count,
         tiles, sums, finish);
}

/// out[0] = the finished sum of the terms 0 ... count - 1. `terms_from(begin)` returns the terms
/// from `begin` on, a multiple of kSumTile. `aligned` holds for all of them.
template <typename TermsFrom>
void sum_of_terms(const char* name, cudaStream_t stream, const TermsFrom& terms_from, bool aligned,
                  std::size_t count, Finish finish, float* out, std::span<float> scratch) {
  if (count <= kSumTile) {
    launch_tiles(name, stream, terms_from(0), aligned, count, out, finish);
    return;
  }
  TileSums sums(name, stream, scratch);
  const std::size_t piece = sums.capacity() * kSumTile;
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t length = std::min(piece, count - begin);
    launch_tiles(name, stream, terms_from(begin), aligned, length, sums.next(tiles_of(length)));
  }
  sums.finish(finish, out);
}

/// out[0] = the finished sum of the rows' terms, in reduce.hpp's order.
///
/// `enqueue_terms(begin, rows, terms)` enqueues what writes the terms of `rows` rows from `begin`
/// on; it is called for at most kRowsAtOnce rows at a time, whose terms are at the front of the
/// scratch memory. The rest of that, at least 4 * kSumTile elements, is for the sums. kRowsAtOnce
/// is a power of two of tiles, so that it divides TileSums' capacity.
template <std::size_t kRowsAtOnce, typename EnqueueTerms>
void sum_of_rows(const char* name, cudaStream_t stream, std::size_t rows,
                 const EnqueueTerms& enqueue_terms, Finish finish, float* out,
                 std::span<float> scratch) {
  static_assert(std::has_single_bit(kRowsAtOnce) && kRowsAtOnce / kSumTile <= kSumTile);
  const std::span<float> terms = scratch.first(kRowsAtOnce);
  TileSums sums(name, stream, scratch.subspan(kRowsAtOnce));
  for (std::size_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, rows - begin);
    enqueue_terms(begin, count, terms.data());
    const bool alone = rows <= kSumTile;
    float* const tile_sums = alone ? out : sums.next(tiles_of(count));
    launch_tiles(name, stream, ElementTerms{terms.data()}, true, count, tile_sums,
                 alone ? finish : Finish{});
    if (alone) return;
  }
  sums.finish(finish, out);
}

/// The most terms: kSumTile to the power of the sum's passes.
inline constexpr std::size_t kMostWarpTerms = kSumTile * kSumTile * kSumTile;

/// Returns the sum of term(0) ... term(count - 1), at most kMostWarpTerms; 0 if there are none. All
/// lanes of the warp call it and get the same result.
///
/// A tile's sum goes to the lane that adds it in the next pass; a pass over one term would change
/// no bit.
template <typename Term>
__device__ float sum_terms_of_warp(std::size_t count, const Term& term) {
  const unsigned lane = threadIdx.x % kWarpLanes;
  const std::size_t tiles = count == 0 ? 1 : (count - 1) / kSumTile + 1;
  float second = 0;
  float third = 0;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::size_t begin = tile * kSumTile;
    const std::size_t end = begin + kSumTile < count ? begin + kSumTile : count;
    float sum = 0;
    for (std::size_t i = begin + lane; i < end; i += kWarpLanes) sum += term(i);
    sum = fold_lanes_to_all(sum);
    if (tiles == 1) return sum;
    if (tile % kWarpLanes == lane) second += sum;
    if (tile % kSumTile != kSumTile - 1 && tile + 1 != tiles) continue;
    sum = fold_lanes_to_all(second);
    second = 0;
    if (tile / kSumTile % kWarpLanes == lane) third += sum;
  }
  return fold_lanes_to_all(third);
}

/// The terms (x[i] - y[i])^2.
struct SquareTerms {
  const float* x;
  const float* y;

  __device__ static float square(float a, float b) {
    const float difference = rounded_add(a, -b);
    return rounded_multiply(difference, difference);
  }
  __device__ float one(std::size_t i) const { return square(x[i], y[i]); }
  __device__ float4 four(std::size_t i) const {
    const float4 a = *reinterpret_cast<const float4*>(x + i);
    const float4 b = *reinterpret_cast<const float4*>(y + i);
    return float4{square(a.x, b.x), square(a.y, b.y), square(a.z, b.z), square(a.w, b.w)};
  }
};

/// out[0] = the finished sum of the squares. x and y have the same size.
inline void enqueue_squared_distance(const char* name, cudaStream_t stream,
                                     std::span<const float> x, std::span<const float> y,
                                     Finish finish, float* out, std::span<float> workspace) {
  const auto terms_from = [x, y](std::size_t begin) {
    return SquareTerms{x.data() + begin, y.data() + begin};
  };
  sum_of_terms(name, stream, terms_from, are_aligned(x.data(), y.data()), x.size(), finish, out,
               workspace);
}

#endif

}  // namespace weir::cuda
