// The counters of what is queued, against what the events of the same file add up to by independent
// rules.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "runs.hpp"

namespace weir::timeline::testing {
namespace {

using nlohmann::json;
using weir::testing::run_weir_train;

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
Steps queued_batches(const Process& process) {
  Steps steps;
  for (const TimelineRecord& record : process.records) {
    if (record.kind == TimelineKind::kClose) steps.change(record.begin, 1);
    if (record.kind == TimelineKind::kSettle) steps.change(record.begin, -1);
  }
  return steps;
}

/// The device time of operations, from the end of their submission, or their earlier begin, until
/// they are done.
Steps queued_time(const Process& process) {
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

constexpr double kNsInUs = 1000;
constexpr double kNsInMs = 1'000'000;

std::uint64_t rounded(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

/// The samples of one counter of a JSON file.
std::vector<Sample> samples_of(const json& events, const char* name, const char* key,
                               double value_unit) {
  std::vector<Sample> samples;
  for (const json& event : events) {
    if (event["ph"] != "C" || event["name"] != name) continue;
    samples.push_back({.time = rounded(event["ts"].get<double>() * kNsInUs),
                       .value = rounded(event["args"][key].get<double>() * value_unit)});
  }
  return samples;
}

class QueuedCounters : public RecordedRuns, public ::testing::WithParamInterface<const char*> {};

TEST_P(QueuedCounters, AreWhatTheEventsAddUpToAtEverySample) {
  const Finished run =
      run_weir_train(run_with({{"--batches", "48", "--batch-size", "32", "--budget", "64MiB",
                                "--policy", GetParam(), "--timeline", file("run.json")}}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Timeline timeline = read_timeline(file("run.json"));
  const Process& process = timeline.processes.at(0);
  const json events = json::parse(weir::testing::read_file(file("run.json")));
  const auto batches = samples_of(events, "queued batches", "batches", 1);
  const auto time = samples_of(events, "queued device time", "ms", kNsInMs);
  EXPECT_GT(batches.size(), 10U);
  EXPECT_GT(time.size(), 100U);
  constexpr std::uint64_t kMicrosecond = 1000;  // which the file rounds to
  queued_batches(process).expect(batches);
  queued_time(process).expect(time, kMicrosecond);
}
INSTANTIATE_TEST_SUITE_P(Policies, QueuedCounters,
                         ::testing::Values("throttled", "unbounded", "barrier"));

}  // namespace
}  // namespace weir::timeline::testing
