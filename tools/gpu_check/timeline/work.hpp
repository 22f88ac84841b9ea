#pragma once

// The work that the check of timelines has a GPU do.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpu_check/timeline/stretch.hpp"

namespace weir::gpu_check {

enum class WorkSize : std::uint8_t { kMeasured, kSmall };  ///< kSmall: for a CPU, measures nothing

/// Why there is no GPU to do work; empty where there is one.
[[nodiscard]] std::string why_no_gpu();

/// Kernels of several lengths, launched one by one and as a graph, and copies in both directions
/// and on the device, on one stream, in stretches of which each has a batch of its own. Before the
/// first stretch of a kind it is run once for itself, which is a stretch too. Throws CudaError.
[[nodiscard]] std::vector<Stretch> do_work(WorkSize size);

}  // namespace weir::gpu_check
