#pragma once

// The device time that a process has submitted and the device has not done, over time.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Joins what submits work with what the device did: an operation's submission with its execution,
/// and a call of the driver with the kernels, copies and sets that it began. Each piece of work
/// counts with its length, from the end of its submission to its own end. Work whose submission is
/// not known counts from its own beginning. Not thread-safe.
class QueuedTime {
 public:
  /// From `time` on, `value` nanoseconds are queued.
  struct Step {
    std::uint64_t time = 0;
    std::uint64_t value = 0;
  };

  /// Appends the steps that are known after `record`, by time. Work that is told of much later than
  /// its neighbours counts from the last step on.
  void add(const TimelineRecord& record, std::vector<Step>& steps);
  /// Appends what is left. Nothing may be added afterwards.
  void finish(std::vector<Step>& steps);

 private:
  struct Work {
    std::uint64_t from = 0, to = 0;
  };
  /// An operation of which one of the two is known.
  struct Half {
    std::optional<std::uint64_t> submitted;
    Work work;
  };
  using Change = std::pair<std::uint64_t, std::int64_t>;  ///< when, and by how much

  void add_operation(const TimelineRecord& record);
  void add_call(const TimelineRecord& record);
  void add_work(const TimelineRecord& record);
  void count_work(std::uint64_t submitted, const Work& work);
  void count(std::uint64_t submitted, const Work& work);
  void give_up_waiting();
  [[nodiscard]] std::uint64_t known_until() const;
  [[nodiscard]] std::uint64_t earliest_submission(std::uint64_t from) const;
  void apply_until(std::uint64_t time, std::vector<Step>& steps);

  std::map<std::uint64_t, Half> halves_;          ///< by operation
  std::map<std::uint64_t, std::uint64_t> calls_;  ///< ends, by correlation id
  std::multimap<std::uint64_t, Work> waiting_;    ///< for their calls, by correlation id
  bool any_work_ = false;                         ///< a profiler tells of the device
  std::uint64_t latest_ = 0;                      ///< begin of work that a profiler told of
  std::uint64_t longest_wait_ = 0;                ///< of work, from its submission to its begin

  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::int64_t queued_ = 0;
  std::uint64_t told_until_ = 0;
};

}  // namespace weir::timeline
