#pragma once

// Writes Perfetto's own format, for long runs: a third of the bytes of Chrome's JSON, and Perfetto
// opens it faster. It contains everything twice: as slices, arrows and counters for Perfetto, and
// as packed records for our reader, which Perfetto skips.

#include <memory>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Writes `.pftrace` to `sink`, which must outlive the writer. A file truncated anywhere loses only
/// its last event. Perfetto shows allocations, frees and uses of blocks only through counters; the
/// packed records contain them.
[[nodiscard]] std::unique_ptr<Writer> make_perfetto_writer(ByteSink& sink);

}  // namespace weir::timeline
