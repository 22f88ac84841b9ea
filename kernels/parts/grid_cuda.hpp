#pragma once

/// @file
/// How many threads a kernel gets.

#include <cstddef>

#include "kernels/parts/launch_cuda.hpp"

namespace weir::cuda {

/// Threads of every block: a multiple of the 32 lanes of a warp.
inline constexpr unsigned kBlockThreads = 256;

/// Lanes of a warp.
inline constexpr unsigned kWarpLanes = 32;

/// Warps of every block.
inline constexpr unsigned kBlockWarps = kBlockThreads / kWarpLanes;

/// Blocks for `items` pieces of work, of which a block does `items_of_block` at once: as many as
/// fill the current device, and no more than the work needs. The rest is for grid-stride loops,
/// which give the same results whatever this returns. Thread-safe; CudaError when the device cannot
/// be asked.
[[nodiscard]] Grid grid_for(std::size_t items, std::size_t items_of_block = kBlockThreads);

}  // namespace weir::cuda
