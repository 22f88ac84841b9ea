#pragma once

// Sums what devices and frontends did, by operation.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// The group of a table row. Rows are in this order.
enum class TaskGroup : std::uint8_t {
  kOperation,  ///< kernels and scheduler operations, by name
  kCopy,       ///< by direction
  kSet,        ///< memory fills
  kAllocator,  ///< allocations, frees, growth: counts and bytes, no time
  kWait,       ///< waits of frontends: barriers, stalls, waits for memory
};
[[nodiscard]] constexpr auto names_of(TaskGroup /*of*/) noexcept {
  return name_table("operation", "copy", "set", "allocator", "wait");
}
struct TaskRow {
  TaskGroup group{};
  std::string name{};
  TimelineCopy direction{};  ///< of a copy
  std::uint64_t count = 0;
  /// Time on streams that no earlier work of the stream covers; for waits, elapsed time.
  std::uint64_t total = 0;
  std::uint64_t longest = 0;  ///< the longest one, from begin to end
  double share = 0;           ///< share of the streams' busy time; 0 for waits
  std::uint64_t bytes = 0;
  double bytes_per_second = 0;  ///< 0 if unknown
};
struct TaskTable {
  DeviceKey device{};
  std::string name{};           ///< the device's name for people
  std::vector<TaskRow> rows{};  ///< by group, then by descending total, then by name
  /// Busy time, summed over the device's streams. The totals of kOperation, kCopy and kSet add up
  /// to exactly this.
  std::uint64_t busy = 0;
  std::uint64_t count = 0;  ///< number of works
};
/// Returns a table for each device that worked. The last table has what belongs to no device:
/// allocator events and waits only.
[[nodiscard]] std::vector<TaskTable> task_tables(const Index& index);
/// Returns the direction in which a work of `stream` copies; nothing if it is no copy.
[[nodiscard]] std::optional<TimelineCopy> copy_direction(const StreamInfo& stream,
                                                         const TimelineRecord& work) noexcept;

}  // namespace weir::timeline

namespace weir {

[[nodiscard]] constexpr auto names_of(TimelineCopy /*of*/) noexcept {
  return name_table("copy", "copy to device", "copy from device", "copy on device",
                    "copy between devices", "copy on host");
}

}  // namespace weir
