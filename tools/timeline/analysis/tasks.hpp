#pragma once

// What devices and frontends did, by operation.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// What a row of the table is about; rows are in this order.
enum class TaskGroup : std::uint8_t {
  kOperation,  ///< kernels, and operations of the scheduler, by name
  kCopy,       ///< by direction
  kSet,        ///< memory filled
  kAllocator,  ///< allocations, frees, growth: counts and bytes, no time
  kWait,       ///< of frontends: barriers, stalls, waits for memory
};
struct TaskRow {
  TaskGroup group{};
  std::string name{};
  TimelineCopy direction{};  ///< of a copy
  std::uint64_t count = 0;
  /// Time on streams that no earlier work of the stream covers; of waits the time on the clock.
  std::uint64_t total = 0;
  std::uint64_t longest = 0;  ///< one of them, from begin to end
  double share = 0;           ///< of the streams' busy time; of waits 0
  std::uint64_t bytes = 0;
  double bytes_per_second = 0;  ///< 0 where not known
};
struct TaskTable {
  DeviceKey device{};
  std::string name{};           ///< of the device, for people
  std::vector<TaskRow> rows{};  ///< by group, then the largest total first, then by name
  /// Sum over the device's streams of the time in which each worked. The totals of kOperation,
  /// kCopy and kSet add up to exactly this.
  std::uint64_t busy = 0;
  std::uint64_t count = 0;  ///< pieces of work
};
/// One for each device that worked. What belongs to no device (allocator, waits) is in the last:
/// its rows are of these two groups alone.
[[nodiscard]] std::vector<TaskTable> task_tables(const Index& index);
/// `copy to device`, ...
[[nodiscard]] std::string_view to_string(TimelineCopy direction) noexcept;

}  // namespace weir::timeline
