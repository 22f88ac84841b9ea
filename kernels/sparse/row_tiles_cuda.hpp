#pragma once

/// @file
/// Rows of logits on a device, in the tiles of reduce.hpp: one warp does one tile, so that a row of
/// many classes is spread over the device. For the sources of this folder.
///
/// The work on a tile is a structure with `__device__ void operator()(const RowTile&) const`, which
/// all lanes of a warp call. Lane l has the elements l, l + 32, ... of the tile in registers; such
/// accesses are whole lines for a warp, and all of a tile's are in flight together.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/parts/check.hpp"
#include "kernels/parts/host_device.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sums/reduce.hpp"

namespace weir::cuda {

/// Tiles whose results are in the workspace at a time, two floats each.
inline constexpr std::size_t kTilesAtOnce = std::size_t{1} << 15U;
/// Rows whose terms are in the workspace at a time.
inline constexpr std::size_t kRowTermsAtOnce = std::size_t{1} << 15U;
/// The most classes, so that a row's tiles fit.
inline constexpr std::size_t kMostRowClasses = kTilesAtOnce * kSumTile;
static_assert(2 * kTilesAtOnce + kRowTermsAtOnce + 4 * kSumTile <= kWorkspaceElements);

/// Throws UsageError if a row's tiles do not fit the workspace.
inline void require_classes(const char* function, std::size_t classes) {
  require_at_most(function, "classes", classes, kMostRowClasses);
}

/// One tile of a row: elements begin ... begin + count - 1.
struct RowTile {
  std::size_t index;  ///< among all tiles of the launch
  std::size_t row;
  std::size_t begin;
  unsigned count;
  unsigned lane;

  /// Element k of this lane, of kSumLanes, counted from the tile's begin; there if below `count`.
  [[nodiscard]] __device__ unsigned place(unsigned k) const { return lane + k * kWarpLanes; }

  /// values[k] = the lane's k-th element, or `missing`. `tile` is the tile's first element.
  __device__ void load(const float* tile, float missing, float (&values)[kSumLanes]) const {
    WEIR_UNROLL
    for (unsigned k = 0; k < kSumLanes; ++k) {
      values[k] = place(k) < count ? tile[place(k)] : missing;
    }
  }

  /// Returns bit k set if the lane's k-th element is one of the row's `labels` labels, which
  /// ascend.
  [[nodiscard]] __device__ std::uint32_t labelled(const std::uint32_t* classes,
                                                  std::uint32_t labels) const {
    std::uint32_t first = 0;  // the first label that is not below the tile
    for (std::uint32_t end = labels; first < end;) {
      const std::uint32_t middle = first + (end - first) / 2;
      if (classes[middle] < begin) {
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    std::uint32_t bits = 0;
    for (; first < labels && classes[first] - begin < kSumTile; ++first) {
      const auto at = static_cast<unsigned>(classes[first] - begin);
      if (at % kWarpLanes == lane) bits |= 1U << (at / kWarpLanes);
    }
    return bits;
  }
};

/// At least three blocks share a multiprocessor, so that one loads while another computes.
template <typename Work>
__global__ void __launch_bounds__(kBlockThreads, 3)
    row_tiles_kernel(Work work, std::size_t classes, std::size_t row_tiles, std::size_t tiles) {
  const unsigned lane = threadIdx.x % kWarpLanes;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlockWarps;
  for (std::size_t i =
           static_cast<std::size_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarpLanes;
       i < tiles; i += stride) {
    const std::size_t row = i / row_tiles;
    const std::size_t begin = (i - row * row_tiles) * kSumTile;
    const std::size_t left = classes - begin;
    work(RowTile{i, row, begin, static_cast<unsigned>(left < kSumTile ? left : kSumTile), lane});
  }
}

/// Returns the tiles of a row.
[[nodiscard]] constexpr std::size_t row_tiles_of(std::size_t classes) {
  return (classes - 1) / kSumTile + 1;
}

/// Enqueues `work` for all tiles of `rows` rows. A block for every few tiles, because the device
/// spreads many short blocks more evenly than few long ones.
template <typename Work>
void launch_row_tiles(const char* name, cudaStream_t stream, Work work, std::size_t classes,
                      std::size_t rows) {
  constexpr std::size_t kMostBlocks = std::size_t{1} << 20U;
  const std::size_t tiles = rows * row_tiles_of(classes);
  const std::size_t blocks = std::min((tiles - 1) / kBlockWarps + 1, kMostBlocks);
  launch(name, row_tiles_kernel<Work>,
         Grid{.blocks = static_cast<unsigned>(blocks), .threads = kBlockThreads}, stream, work,
         classes, row_tiles_of(classes), tiles);
}

/// Calls `enqueue(begin, rows)` for pieces of all rows, in order, whose tiles fit the workspace.
template <typename Enqueue>
void for_pieces_of_rows(std::size_t classes, std::size_t rows, const Enqueue& enqueue) {
  const std::size_t at_once = kTilesAtOnce / row_tiles_of(classes);
  for (std::size_t begin = 0; begin < rows; begin += at_once) {
    enqueue(begin, std::min(at_once, rows - begin));
  }
}

}  // namespace weir::cuda
