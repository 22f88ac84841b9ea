#pragma once

// Finds the call that submitted a work, and the stream time that belongs to a work alone.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

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

}  // namespace weir::timeline
