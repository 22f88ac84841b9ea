#pragma once

// Perfetto's own format, for long runs: a third of the bytes of Chrome's JSON, and Perfetto opens
// it faster. It holds everything twice: as slices, arrows and counters for Perfetto, and as packed
// records for our reader, which Perfetto skips.

#include <memory>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Writes `.pftrace` to `sink`, which must live as long. A file that is cut anywhere loses its last
/// event alone. Allocations, frees and uses of blocks have no mark of their own in Perfetto; they
/// are in its counters, and in the packed records.
[[nodiscard]] std::unique_ptr<Writer> make_perfetto_writer(ByteSink& sink);

}  // namespace weir::timeline
