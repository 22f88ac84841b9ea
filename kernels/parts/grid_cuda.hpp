#pragma once

/// @file
/// The number of threads of a kernel.

#include <cstddef>

#include "kernels/parts/launch_cuda.hpp"

namespace weir::cuda {

/// Threads of every block: a multiple of the 32 lanes of a warp.
inline constexpr unsigned kBlockThreads = 256;

/// Lanes of a warp.
inline constexpr unsigned kWarpLanes = 32;

/// Warps of every block.
inline constexpr unsigned kBlockWarps = kBlockThreads / kWarpLanes;

/// Returns the blocks for `items` pieces of work, `items_of_block` per block at once: as many as
/// fill the current device, and no more than needed. Grid-stride loops do the rest, with the same
/// results for any grid. Thread-safe. Throws CudaError if the device cannot be queried.
[[nodiscard]] Grid grid_for(std::size_t items, std::size_t items_of_block = kBlockThreads);

}  // namespace weir::cuda
