// The snapshot of a run, against the allocation log of the same run.

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "../snapshot/snapshot_file.hpp"
#include "runs.hpp"
#include "tools/replay/read/readers.hpp"

namespace weir::timeline::testing {
namespace {

using nlohmann::json;
using replay::Operation;
using weir::testing::run_python;

constexpr const char* kLeftOut = "PyTorch's own reader was left out: there is no PyTorch here";

/// A run with a snapshot and an allocation log. The device's pool is the first of the snapshot, and
/// the only one logged.
class RunSnapshot : public RecordedRuns {
 protected:
  void SetUp() override {
    if (!weir::testing::has_python()) GTEST_SKIP() << "there is no python3 here";
  }
  void record(const Words& more) const {
    const Finished run = weir::testing::run_weir_train(
        run_with({{"--batch-size", "64", "--timeline", file("run.pftrace"), "--json", file("json")},
                  more}),
        {{"WEIR_ALLOC_LOG", file("log")}});
    ASSERT_TRUE(run.exit_code == 0 || run.exit_code == 3) << run.err;
    const Finished made =
        weir({"timeline", "convert", file("run.pftrace"), "-o", file("run.pickle")});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  [[nodiscard]] std::vector<Operation> logged() const {
    std::vector<Operation> operations = replay::read_traces(file("log")).at(0).operations;
    // A snapshot does not have them.
    std::erase_if(operations, [](const Operation& operation) {
      return operation.action == replay::Action::kUse;
    });
    return operations;
  }
  [[nodiscard]] std::vector<Operation> in_snapshot() const {
    const auto made = run_python(WEIR_SNAPSHOT_TO_CSV " --device 0 " + file("run.pickle") + " " +
                                 file("lifetimes.csv"));
    EXPECT_EQ(made.status, 0) << made.output;
    return replay::read_traces(file("lifetimes.csv")).at(0).operations;
  }
  void expect_lifetimes() const {
    const std::vector<Operation> expected = logged();
    const std::vector<Operation> found = in_snapshot();
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].action, expected[i].action) << i;
      ASSERT_EQ(found[i].buffer, expected[i].buffer) << i;
      ASSERT_EQ(found[i].bytes, expected[i].bytes) << i;
      if (found[i].action == replay::Action::kAllocate) {
        ASSERT_EQ(found[i].stream, expected[i].stream) << i;
      }
    }
  }
};

TEST_F(RunSnapshot, HasTheLifetimesOfTheAllocationLog) {
  for (const char* const pool : {"round", "best_fit", "paged"}) {
    SCOPED_TRACE(pool);
    std::filesystem::remove(file("log"));
    ASSERT_NO_FATAL_FAILURE(record({"--batches", "6", "--budget", "64MiB", "--pool", pool}));
    EXPECT_FALSE(weir::testing::checked_snapshot(file("run.pickle")).empty());
    expect_lifetimes();
  }
}

std::uint64_t allocations(const std::vector<Operation>& operations) {
  return static_cast<std::uint64_t>(
      std::ranges::count(operations, replay::Action::kAllocate, &Operation::action));
}

TEST_F(RunSnapshot, IsWhatPyTorchsOwnReaderSaysItIs) {
  ASSERT_NO_FATAL_FAILURE(
      record({"--batches", "100", "--budget", "20MiB", "--policy", "unbounded"}));
  ASSERT_NE(figures("json")["result"]["outcome"], "finished");
  const std::optional<json> viewed = weir::testing::viewed_snapshot(file("run.pickle"));
  if (!viewed) GTEST_SKIP() << kLeftOut;
  const json& trace = (*viewed)["traces"][0];
  const std::vector<Operation> log = logged();
  EXPECT_EQ(trace["alloc"], allocations(log));
  EXPECT_EQ(trace["free_requested"], log.size() - allocations(log));
  EXPECT_EQ(trace["free_completed"], log.size() - allocations(log));
  EXPECT_EQ(trace["oom"], 1);
  // Everything was freed at the end, and the reserved memory remains.
  EXPECT_EQ((*viewed)["memory"].value("active_allocated", 0), 0);
  EXPECT_EQ((*viewed)["memory"]["inactive"], figures("json")["result"]["peak_reserved_bytes"]);
}

TEST_F(RunSnapshot, OfBatchesInTheMiddleHasWhatIsStillHeldForPyTorchsOwnReader) {
  ASSERT_NO_FATAL_FAILURE(record({"--batches", "12", "--timeline-batches", "4:8"}));
  EXPECT_FALSE(weir::testing::checked_snapshot(file("run.pickle")).empty());
  const std::optional<json> viewed = weir::testing::viewed_snapshot(file("run.pickle"));
  if (!viewed) GTEST_SKIP() << kLeftOut;
  // By address: a block that is handed out as the recording begins may be in it twice, as allocated
  // and as live.
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint64_t> blocks;
  for (const TimelineRecord& record : read_timeline(file("run.pftrace")).processes[0].records) {
    const std::pair block{record.source, record.id};
    if (record.kind == TimelineKind::kLive || record.kind == TimelineKind::kAllocate) {
      blocks[block] = record.requested;
    } else if (record.kind == TimelineKind::kFree) {
      blocks.erase(block);
    }
  }
  const std::uint64_t held =
      std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const auto& block) { return sum + block.second; });
  EXPECT_GT(held, 0U);
  EXPECT_EQ((*viewed)["memory"]["active_allocated"], held);
}

}  // namespace
}  // namespace weir::timeline::testing
