#pragma once

// Sums what devices and frontends did, by operation.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

// Finds the call that submitted a work, and the stream time that belongs to a work alone.

/// Finds by id the kSubmit of a kExecute, and the kCall of a profiler's record.
class Submissions {
 public:
  explicit Submissions(const Index& index);
  /// Returns the last submission with the work's id that began no later than the work, else the
  /// first one; null if there is none.
  [[nodiscard]] const TimelineRecord* of(const TimelineRecord& work) const;

 private:
  const Index* index_;
  std::vector<std::uint32_t> submits_;  ///< kSubmit by source, id and begin
  std::vector<std::uint32_t> calls_;    ///< kCall by id and begin
};

/// For the works of one stream, in order of begin: returns the recorded time of each that no
/// earlier work covers. The results add up to the time in which the stream worked.
class OwnTimes {
 public:
  explicit OwnTimes(const Index& index) : index_(&index) {}
  [[nodiscard]] std::uint64_t add(Span work) {
    const Span own{std::max(work.begin, until_), work.end};
    until_ = std::max(until_, work.end);
    return index_->recorded(own);
  }

 private:
  const Index* index_;
  std::uint64_t until_ = 0;
};

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

// Computes how much of the copying to a device is hidden behind its computing.

/// In nanoseconds.
struct HiddenCopies {
  std::uint64_t copying = 0;  ///< time in which data were copied to the device
  std::uint64_t hidden = 0;   ///< the part of it in which the device also computed
};
/// Looks at the works of a device within `during`. Kernels and operations compute; copies of any
/// direction and memory fills do not. Copies that overlap count once, and so do computations.
[[nodiscard]] HiddenCopies hidden_copies(const Index& index, DeviceKey device, Span during);

}  // namespace weir::timeline

namespace weir {

[[nodiscard]] constexpr auto names_of(TimelineCopy /*of*/) noexcept {
  return name_table("copy", "copy to device", "copy from device", "copy on device",
                    "copy between devices", "copy on host");
}

}  // namespace weir
