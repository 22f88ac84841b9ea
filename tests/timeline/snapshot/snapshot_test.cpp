// Snapshots hold what Python and PyTorch's viewer need, and the lifetimes of the records.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/timeline/chrome/random_process.hpp"
#include "tests/timeline/snapshot/snapshot_file.hpp"
#include "tests/timeline/support/made_timeline.hpp"

namespace weir::testing {
namespace {

using nlohmann::json;
using timeline::Process;

std::map<std::string, int> count(const std::vector<json>& entries) {
  std::map<std::string, int> counts;
  for (const json& entry : entries) ++counts[entry["action"]];
  return counts;
}

TEST(Snapshot, OfARunHoldsItsHistory) {
  if (!has_python()) GTEST_SKIP() << "there is no python3 here";
  const Process run = timeline::testing::made_process({.seed = 4});
  const auto entries = SnapshotFile({.processes = {run}}).checked();
  std::map<std::string, int> counts = count(entries);
  const auto of = [&](TimelineKind kind) {
    return std::count_if(run.records.begin(), run.records.end(),
                         [&](const TimelineRecord& record) { return record.kind == kind; });
  };
  EXPECT_EQ(counts["alloc"], of(TimelineKind::kAllocate));
  EXPECT_EQ(counts["free_requested"], of(TimelineKind::kFree));
  EXPECT_EQ(counts["free_completed"], of(TimelineKind::kFree));
  EXPECT_EQ(counts["segment_alloc"], of(TimelineKind::kReserve));
  const auto first = std::ranges::find_if(entries, [](const json& entry) {
    return entry["action"] == "alloc" && entry["frames"].size() == 2;
  });
  ASSERT_NE(first, entries.end());
  const json frames = (*first)["frames"];
  EXPECT_EQ(frames[0]["name"], "inputs");
  EXPECT_EQ(frames[0]["filename"], "model.py");
  EXPECT_EQ(frames[0]["line"], 16);
  EXPECT_EQ(frames[1]["name"], "batch 1 (train)");
}

TEST(Snapshot, GoesBackToTheLifetimesOfTheRecords) {
  if (!has_python()) GTEST_SKIP() << "there is no python3 here";
  const Process recorded = timeline::testing::made_process({.seed = 8});
  const SnapshotFile file({.processes = {recorded}});
  const std::string csv = file.path() + ".csv";
  const Ran ran = run_python(WEIR_SNAPSHOT_TO_CSV " " + file.path() + " " + csv);
  ASSERT_EQ(ran.status, 0) << ran.output;
  // A lifetime is its begin and end, counted in allocations and frees, and its size.
  std::vector<std::array<std::uint64_t, 3>> expected;
  std::map<std::uint64_t, std::size_t> live;
  std::uint64_t time = 0;
  for (const TimelineRecord& record : recorded.records) {
    if (record.kind == TimelineKind::kAllocate) {
      live[record.id] = expected.size();
      expected.push_back({time++, ~std::uint64_t{0}, record.requested});
    } else if (record.kind == TimelineKind::kFree) {
      expected[live.at(record.id)][1] = time++;
    }
  }
  for (auto& lifetime : expected) lifetime[1] = std::min(lifetime[1], time);
  std::ifstream lines(csv);
  std::string line;
  std::getline(lines, line);
  SCOPED_TRACE(line);
  std::size_t row = 0;
  for (; std::getline(lines, line); ++row) {
    ASSERT_LT(row, expected.size());
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::array<std::uint64_t, 4> found{};  // buffer, lower, upper, size
    fields >> found[0] >> found[1] >> found[2] >> found[3];
    EXPECT_EQ(found[1], expected[row][0]) << line;
    EXPECT_EQ(found[2], expected[row][1]) << line;
    EXPECT_EQ(found[3], expected[row][2]) << line;
  }
  EXPECT_EQ(row, expected.size());
  std::filesystem::remove(csv);
}

TEST(Snapshot, OfRandomRecordsIsStillOneThatTheViewerReads) {
  if (!has_python()) GTEST_SKIP() << "there is no python3 here";
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    timeline::Timeline timeline;
    std::uint64_t sequence = 0;
    for (int i = 0; i < 2; ++i) {
      Process& process = timeline.processes.emplace_back(
          timeline::testing::random_process(random, {.records = 2'000}));
      // Adjacent addresses.
      for (TimelineRecord& record : process.records) {
        record.id = record.id % 64 * 512;
        record.bytes = record.bytes % 8 * 512;
        record.sequence = ++sequence;
      }
    }
    const SnapshotFile file(timeline);
    EXPECT_FALSE(file.checked().empty());
  }
}

TEST(Snapshot, FreesSegmentsAndNamesOutOfMemory) {
  if (!has_python()) GTEST_SKIP() << "there is no python3 here";
  Process process;
  process.names = {"", "tensor", "a.cpp:7"};
  std::uint64_t sequence = 0;
  const auto add = [&](TimelineRecord record) {
    record.source = 1;
    record.begin = record.end = ++sequence * 1'000;
    record.sequence = sequence;
    process.records.push_back(record);
  };
  add({.bytes = 8'192, .kind = TimelineKind::kPool});
  add({.id = 4'096, .bytes = 4'096, .kind = TimelineKind::kReserve});
  add({.id = 4'096,
       .bytes = 1'024,
       .requested = 1'000,
       .name = 1,
       .site = 2,
       .kind = TimelineKind::kAllocate});
  add({.bytes = 9'000, .allocated = 1'024, .cached = 3'072, .kind = TimelineKind::kFailure});
  add({.id = 4'096, .bytes = 1'024, .requested = 1'000, .kind = TimelineKind::kFree});
  add({.id = 4'096, .bytes = 4'096, .kind = TimelineKind::kRelease});
  const auto entries = SnapshotFile({.processes = {process}}).checked();
  ASSERT_EQ(entries.size(), 6U);
  EXPECT_EQ(entries[0]["action"], "segment_alloc");
  EXPECT_EQ(entries[1]["size"], 1'000);
  EXPECT_EQ(entries[2]["action"], "oom");
  EXPECT_EQ(entries[2]["device_free"], 4'096);
  EXPECT_EQ(entries[3]["frames"][0]["line"], 7);
  EXPECT_EQ(entries[5]["action"], "segment_free");
}

TEST(Snapshot, OfNoPoolIsEmpty) {
  if (!has_python()) GTEST_SKIP() << "there is no python3 here";
  EXPECT_TRUE(SnapshotFile({}).checked().empty());
}

}  // namespace
}  // namespace weir::testing
