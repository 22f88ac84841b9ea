#pragma once

// CUPTI as a source of what the device itself does: kernels, copies, sets, synchronisation, memory
// of the driver and its pools, calls of CUDA, the profiler's own cost.

#include <memory>

#include "allocator/base/setting.hpp"
#include "tools/timeline/model/activity.hpp"

namespace weir::timeline {

/// A source that opens libcupti at its first start(). At most one of a process can gather at a
/// time. start() names whoever else holds CUPTI. Where only some kinds of records are to be had, it
/// starts and says so in a kNote.
///
/// Of its records `thread` is the system's number of the thread (gettid) or 0, `id` the correlation
/// id, and `batch` and `site` are those that push_external() named. Why records were lost is said
/// in notes. It lets go of CUPTI when it was stopped and everything was collected, in either order.
[[nodiscard]] std::unique_ptr<ActivitySource> make_cupti_source(
    const Environment& environment = process_environment());

/// Until pop_external(), what the calling thread starts on the device belongs to this batch and
/// call site (numbers of TimelineSink::site). Nothing happens where CUPTI does not gather. May be
/// nested. Thread-safe.
void push_external(std::uint32_t batch, std::uint32_t site) noexcept;
void pop_external() noexcept;

}  // namespace weir::timeline
