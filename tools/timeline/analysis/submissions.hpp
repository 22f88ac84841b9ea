#pragma once

// Which call submitted a piece of work, and how much of a stream's time is a work's own.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// Finds the kSubmit of a kExecute, and the kCall of a profiler's record, by id.
class Submissions {
 public:
  explicit Submissions(const Index& index);
  /// The last with the work's id that began no later than it, else the first; null where there is
  /// none.
  [[nodiscard]] const TimelineRecord* of(const TimelineRecord& work) const;

 private:
  const Index* index_;
  std::vector<std::uint32_t> submits_;  ///< kSubmit by source, id and begin
  std::vector<std::uint32_t> calls_;    ///< kCall by id and begin
};

/// Of the works of one stream, which come by begin: the recorded time of each that no earlier one
/// covers. What it returns adds up to the time in which the stream worked.
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

}  // namespace weir::timeline
