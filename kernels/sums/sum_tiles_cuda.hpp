#pragma once

/// @file
/// The kernel of the sums in reduce.hpp's order, for the sources of this folder: one warp adds up
/// one tile.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/parts/grid_cuda.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/warp_cuda.hpp"
#include "kernels/sums/reduce.hpp"
#include "kernels/sums/tile_sums_cuda.hpp"

namespace weir::cuda {

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

/// Whether `x` may be read sixteen bytes at a time.
[[nodiscard]] inline bool is_aligned(const float* x) {
  return reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
}

}  // namespace weir::cuda
