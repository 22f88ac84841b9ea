#pragma once

// PyTorch's memory snapshot, for its viewer at https://pytorch.org/memory_viz and for
// torch.cuda._memory_viz.

#include <string>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// The bytes of a snapshot: a pickle of protocol 2, within the opcodes of the viewer. Each pool is
/// a device of the viewer, in the order of processes and pools. Frames are the call site and the
/// batch. Throws std::bad_alloc only.
[[nodiscard]] std::string to_snapshot(const Timeline& timeline);

}  // namespace weir::timeline
