// weir-train with --timeline: the file agrees with the run's own output.

#include <gmock/gmock.h>

#include <algorithm>

#include "runs.hpp"
#include "scheduler/device/stream.hpp"
#include "tools/timeline/analysis/batches.hpp"
#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/analysis/idle.hpp"

namespace weir::timeline::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using weir::testing::read_file;
using weir::testing::run_weir_train;

const Words kSmallRun{"--batches", "16", "--batch-size", "64", "--budget", "64MiB"};

std::uint64_t count_of(const Index& index, TimelineKind kind) { return index.of(kind).size(); }

void expect_stalls(const Index& index, const json& result) {
  const StallFigures stalls = stall_figures(index);
  const auto count = [&](TimelineStall reason) {
    return stalls.admission.at(static_cast<std::size_t>(reason)).count;
  };
  EXPECT_EQ(count(TimelineStall::kBudget), result["stalls_budget"]["count"]);
  EXPECT_EQ(count(TimelineStall::kRunAhead), result["stalls_run_ahead"]["count"]);
  EXPECT_EQ(count(TimelineStall::kTurn), result["stalls_turn"]["count"]);
  EXPECT_EQ(count_of(index, TimelineKind::kPoolWait), result["pool"]["waits"]);
  const double stalled = result["stalls_run_ahead"]["seconds"];
  const Waits& run_ahead = stalls.admission.at(static_cast<std::size_t>(TimelineStall::kRunAhead));
  EXPECT_NEAR(1e-9 * static_cast<double>(run_ahead.total), stalled, 0.01 + 0.01 * stalled);
}

/// The pool of the device, rebuilt from its events alone.
void expect_memory(const Index& index, const json& result) {
  const AccountingCheck check = check_accounting(index);
  EXPECT_GT(check.compared, 100U);
  EXPECT_EQ(check.differ, 0U);
  EXPECT_EQ(check.gaps, 0U);
  EXPECT_EQ(check.strays, 0U);
  bool found = false;
  for (const PoolInfo& pool : index.pools()) {
    if (index.process().name(pool.name) != "cpu") continue;
    found = true;
    std::uint64_t reserved = 0;
    std::uint64_t held = 0;
    std::uint64_t allocated = 0;
    PoolReplay replay(index, pool);
    while (replay.next()) {
      EXPECT_TRUE(replay.known());
      reserved = std::max(reserved, replay.counts().reserved());
      held = std::max(held, replay.counts().allocated + replay.counts().awaiting);
      allocated = std::max(allocated, replay.counts().allocated);
    }
    EXPECT_EQ(reserved, result["peak_reserved_bytes"]);
    EXPECT_EQ(held, result["peak_held_bytes"]);
    EXPECT_EQ(allocated, result["peak_allocated_bytes"]);
  }
  EXPECT_TRUE(found);
}

void expect_idle_share(const Index& index, const json& result) {
  const Span measured = measured_span(index.process().info, result);
  ASSERT_GT(measured.length(), 0U);
  std::uint64_t busy = 0;
  for (const std::uint32_t place : index.of(TimelineKind::kExecute)) {
    const TimelineRecord& record = index.record(place);
    if (record.detail != static_cast<std::uint8_t>(StreamRole::kCompute)) continue;
    busy += common(span_of(record), measured).length();
  }
  const auto length = static_cast<double>(measured.length());
  EXPECT_NEAR(1 - static_cast<double>(busy) / length, result["idle_share"], 0.01);
  EXPECT_DOUBLE_EQ(1e-9 * length, result["seconds"]);
}

/// Each operation is submitted once and executed once, by batches that begin and end.
void expect_operations(const Index& index, const json& result) {
  const std::uint64_t batches = result["batches"];
  EXPECT_EQ(count_of(index, TimelineKind::kAdmit), batches);
  EXPECT_EQ(count_of(index, TimelineKind::kClose), batches);
  EXPECT_EQ(count_of(index, TimelineKind::kSettle), batches);
  const auto numbers = [&](TimelineKind kind) {
    std::vector<std::uint64_t> all;
    for (const std::uint32_t place : index.of(kind)) all.push_back(index.record(place).id);
    std::ranges::sort(all);
    return all;
  };
  const std::vector<std::uint64_t> submitted = numbers(TimelineKind::kSubmit);
  EXPECT_GT(submitted.size(), batches * 10);
  EXPECT_EQ(std::ranges::adjacent_find(submitted), submitted.end());
  EXPECT_EQ(submitted, numbers(TimelineKind::kExecute));
  EXPECT_EQ(submitted.size(), result["operations"]);
}

/// A call site is a path from the root of the repository, wherever that was compiled.
void expect_call_sites(const Index& index) {
  for (const std::uint32_t place : index.of(TimelineKind::kSubmit)) {
    EXPECT_THAT(std::string(index.process().name(index.record(place).site)),
                ::testing::StartsWith("trainer/"));
  }
}

class TrainTimeline : public RecordedRuns, public ::testing::WithParamInterface<const char*> {};

TEST_P(TrainTimeline, SaysWhatTheRunSays) {
  const Words policy{"--policy", GetParam()};
  const Finished recorded =
      run_weir_train(run_with({kSmallRun,
                               policy,
                               {"--timeline", file("run.pftrace"), "--json", file("run.json"),
                                "--save", file("recorded")}}));
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const Finished plain = run_weir_train(run_with({kSmallRun, policy, {"--save", file("plain")}}));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(read_file(file("recorded")), read_file(file("plain"))) << "the weights, bit for bit";

  const json figures = this->figures("run.json");
  const Timeline timeline = read_timeline(file("run.pftrace"));
  const Process& process = timeline.processes.at(0);
  EXPECT_TRUE(process.complete);
  EXPECT_EQ(process.lost, 0U);
  EXPECT_EQ(figures["timeline"]["lost"], 0);
  EXPECT_EQ(figures["timeline"]["file"], file("run.pftrace"));
  const Index index(process);
  const json& result = figures["result"];
  expect_operations(index, result);
  expect_call_sites(index);
  expect_stalls(index, result);
  expect_memory(index, result);
  expect_idle_share(index, result);
}
INSTANTIATE_TEST_SUITE_P(Policies, TrainTimeline,
                         ::testing::Values("throttled", "unbounded", "barrier"));

using TrainWindow = RecordedRuns;

TEST_F(TrainWindow, TheBatchesAskedForAreRecordedAndNoOthers) {
  const Finished run =
      run_weir_train(run_with({{"--batches", "24", "--batch-size", "8", "--timeline",
                                file("run.json"), "--timeline-batches", "10:20"}}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Timeline timeline = read_timeline(file("run.json"));
  const Index index(timeline.processes.at(0));
  EXPECT_EQ(check_accounting(index).differ, 0U);
  std::vector<std::uint32_t> begun;
  std::vector<std::uint32_t> submitting;
  for (const std::uint32_t place : index.of(TimelineKind::kAdmit)) {
    if (admission_of(index.record(place)) == TimelineAdmission::kBefore) continue;
    begun.push_back(index.record(place).batch);
  }
  for (const std::uint32_t place : index.of(TimelineKind::kSubmit))
    submitting.push_back(index.record(place).batch);
  EXPECT_THAT(begun, ::testing::ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 18, 19));
  EXPECT_THAT(submitting,
              ::testing::Each(::testing::AllOf(::testing::Ge(10U), ::testing::Lt(20U))));
  EXPECT_GT(count_of(index, TimelineKind::kLive), 6U) << "the weights are from before";
  const json summary = report("run.json")["summary"];
  EXPECT_TRUE(summary["began_late"]);
  EXPECT_EQ(summary["batches"], 10);
}

using TrainOutOfMemory = RecordedRuns;

TEST_F(TrainOutOfMemory, TheLastMomentsAreThereAndTheReportNamesTheCommandForTheirPage) {
  const Finished run = run_weir_train(
      run_with({{"--policy", "unbounded", "--budget", "20MiB", "--batches", "100", "--batch-size",
                 "64", "--timeline", file("run.json"), "--json", file("figures")}}));
  EXPECT_EQ(run.exit_code, 3) << run.err;
  const std::string last = file("run.oom.pftrace");
  const std::string page = file("run.oom.html");
  const std::string command = "weir timeline report '" + last + "' -o '" + page + "'";
  EXPECT_THAT(run.err, HasSubstr("what led to it: " + command));
  EXPECT_THAT(figures("figures")["result"]["report"].get<std::string>(), HasSubstr(command))
      << "the report is made after the file";
  EXPECT_EQ(weir({"timeline", "report", last, "-o", page}).exit_code, 0);
  EXPECT_THAT(read_file(page), HasSubstr("</html>"));
  const json said = report("run.json");
  ASSERT_EQ(said["failures"].size(), 1U);
  EXPECT_EQ(said["summary"]["failures"], 1);
  const std::string outcome = figures("figures")["result"]["outcome"];
  EXPECT_EQ(outcome, "out of memory in batch " + said["failures"][0]["batch"].dump());
}

}  // namespace
}  // namespace weir::timeline::testing
