#pragma once

// Writes PyTorch's memory snapshot, for the viewer at https://pytorch.org/memory_viz and
// torch.cuda._memory_viz.

#include <string>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Returns a snapshot: a pickle of protocol 2, with the viewer's opcodes. Each pool is a device of
/// the viewer, in the order of processes and pools. Frames are the call site and the batch. Throws
/// only std::bad_alloc.
[[nodiscard]] std::string to_snapshot(const Timeline& timeline);

/// Returns whether a file that begins so is a pickle, of any program.
[[nodiscard]] bool is_pickle(std::string_view front);

}  // namespace weir::timeline
