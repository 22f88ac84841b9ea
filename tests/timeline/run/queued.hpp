#pragma once

// Queued amounts of a device, rebuilt from the events of a timeline by independent rules, and
// compared with the file's samples.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::testing {

/// The value of a counter at a moment, as in a file.
struct Sample {
  std::uint64_t time = 0;
  std::uint64_t value = 0;
};

/// A value that changes at moments.
class Steps {
 public:
  void change(std::uint64_t time, std::int64_t by) { changes_.emplace_back(time, by); }

  /// Checks that every sample has a value of its time, and that the highest value is among them.
  /// Samples do not show less than `unit`.
  void expect(const std::vector<Sample>& samples, std::uint64_t unit = 1) const {
    const std::map<std::uint64_t, std::set<std::uint64_t>> values = all_values();
    std::uint64_t most = 0;
    for (const auto& [time, there] : values) most = std::max(most, *there.rbegin());
    std::uint64_t shown = 0;
    for (const Sample& sample : samples) {
      shown = std::max(shown, sample.value);
      const auto there = values.find(sample.time);
      ASSERT_NE(there, values.end()) << "nothing changes at " << sample.time;
      const bool agrees = std::ranges::any_of(
          there->second, [&](std::uint64_t value) { return value / unit == sample.value / unit; });
      ASSERT_TRUE(agrees) << "at " << sample.time << " shown " << sample.value << ", rebuilt "
                          << *there->second.rbegin();
    }
    ASSERT_FALSE(samples.empty());
    EXPECT_EQ(shown / unit, most / unit);
    EXPECT_EQ(samples.back().value / unit, 0U) << "all is done at the end";
  }

 private:
  /// The values at each moment where it changes, one after each change.
  [[nodiscard]] std::map<std::uint64_t, std::set<std::uint64_t>> all_values() const {
    auto sorted = changes_;
    std::ranges::sort(sorted);
    std::map<std::uint64_t, std::set<std::uint64_t>> values;
    std::int64_t value = 0;
    for (const auto& [time, by] : sorted) {
      value += by;
      // Several changes at one moment may come in any order.
      values[time].insert(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)));
    }
    EXPECT_EQ(value, 0);
    return values;
  }

  std::vector<std::pair<std::uint64_t, std::int64_t>> changes_;
};

/// Batches from their close until they are settled.
inline Steps queued_batches(const Process& process) {
  Steps steps;
  for (const TimelineRecord& record : process.records) {
    if (record.kind == TimelineKind::kClose) steps.change(record.begin, 1);
    if (record.kind == TimelineKind::kSettle) steps.change(record.begin, -1);
  }
  return steps;
}

/// The device time of operations, from the end of their submission, or their earlier begin, until
/// they are done.
inline Steps queued_time(const Process& process) {
  std::map<std::uint64_t, const TimelineRecord*> executions;
  for (const TimelineRecord& record : process.records) {
    if (record.kind == TimelineKind::kExecute) executions[record.id] = &record;
  }
  Steps steps;
  for (const TimelineRecord& record : process.records) {
    if (record.kind != TimelineKind::kSubmit) continue;
    const TimelineRecord& execution = *executions.at(record.id);
    const auto length = static_cast<std::int64_t>(execution.end - execution.begin);
    steps.change(std::min(record.end, execution.begin), length);
    steps.change(execution.end, -length);
  }
  return steps;
}

}  // namespace weir::timeline::testing
