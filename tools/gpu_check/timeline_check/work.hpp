#pragma once

// The work that the check of timelines runs on a GPU.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpu_check/timeline_check/stretch.hpp"

namespace weir::gpu_check {

enum class WorkSize : std::uint8_t { kMeasured, kSmall };  ///< kSmall: for a CPU, measures nothing

/// Returns why no GPU can work, or an empty text.
[[nodiscard]] std::string why_no_gpu();

/// Runs kernels of several lengths, launched one by one and as a graph, and copies in both
/// directions and on the device. All run on one stream, in stretches with a batch each. A warm-up
/// stretch precedes the first of each kind. Throws CudaError.
[[nodiscard]] std::vector<Stretch> do_work(WorkSize size);

}  // namespace weir::gpu_check
