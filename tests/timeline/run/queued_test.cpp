// The counters of what is queued, against the events of the same file.

#include "queued.hpp"

#include <cmath>

#include "runs.hpp"
#include "support/sanitized.hpp"

namespace weir::timeline::testing {
namespace {

using nlohmann::json;
using weir::testing::run_weir_train;

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
  const Finished run = run_weir_train(
      run_with({{"--batches", WEIR_TEST_SANITIZED != 0 ? "20" : "48", "--batch-size", "32",
                 "--budget", "64MiB", "--policy", GetParam(), "--timeline", file("run.json")}}));
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
