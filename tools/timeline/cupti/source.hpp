#pragma once

// Records the device's own activity with CUPTI: kernels, copies, sets, synchronisation, the
// driver's memory and pools, CUDA calls, and the profiler's overhead.

#include <memory>

#include "allocator/base/setting.hpp"
#include "tools/timeline/model/activity.hpp"

namespace weir::timeline {

/// Returns a source that opens libcupti at its first start(). Only one source per process can
/// gather at a time. start() names any other holder of CUPTI. If only some kinds of records are
/// available, it starts and says so in a kNote.
///
/// In its records, `thread` is the system's thread number (gettid) or 0, `id` the correlation id,
/// and `batch` and `site` come from push_external(). Notes explain lost records. The source
/// releases CUPTI once it is stopped and everything is collected, in either order.
[[nodiscard]] std::unique_ptr<ActivitySource> make_cupti_source(
    const Environment& environment = process_environment());

/// Assigns the device work that the calling thread starts until pop_external() to this batch and
/// call site (numbers of TimelineSink::site). Does nothing if CUPTI is not gathering. Calls may
/// nest. Thread-safe.
void push_external(std::uint32_t batch, std::uint32_t site) noexcept;
void pop_external() noexcept;

}  // namespace weir::timeline
