#pragma once

// Computes over time the device time that a process has submitted and the device has not completed.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Matches submissions with device work: an operation's submission with its execution, and a driver
/// call with the kernels, copies and sets that it began. Each work counts with its length, from the
/// end of its submission to its own end. Work with an unknown submission counts from its begin. Not
/// thread-safe.
class QueuedTime {
 public:
  /// From `time` on, `value` nanoseconds are queued.
  struct Step {
    std::uint64_t time = 0;
    std::uint64_t value = 0;
  };

  /// Appends the steps that are known after `record`, by time. Work that is reported much later
  /// than its neighbours counts from the last step on.
  void add(const TimelineRecord& record, std::vector<Step>& steps);
  /// Appends the rest. Do not add anything afterwards.
  void finish(std::vector<Step>& steps);

 private:
  struct Work {
    std::uint64_t from = 0, to = 0;
  };
  /// An operation with only one of the two records so far.
  struct Half {
    std::optional<std::uint64_t> submitted;
    Work work;
  };
  using Change = std::pair<std::uint64_t, std::int64_t>;  ///< time and amount

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
  std::map<std::uint64_t, std::uint64_t> calls_;  ///< end of each call, by correlation id
  std::multimap<std::uint64_t, Work> waiting_;    ///< works waiting for their calls, by correlation
                                                  ///< id
  bool any_work_ = false;                         ///< a profiler reports device work
  std::uint64_t latest_ = 0;                      ///< latest begin of work that a profiler reported
  std::uint64_t longest_wait_ = 0;                ///< from a work's submission to its begin

  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::int64_t queued_ = 0;
  std::uint64_t told_until_ = 0;
};

}  // namespace weir::timeline
