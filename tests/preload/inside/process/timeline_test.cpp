// What recorders receive from a program under Weir, and the functions that start and stop its
// timeline.

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/told_timeline.hpp"
#include "tests/preload/inside/inside.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::preload::testing {
namespace {

using weir::testing::ToldTimeline;
using Kind = TimelineKind;

/// Records what a profiler would receive.
class Marker final : public TimelineMarker {
 public:
  void push(std::uint32_t batch, std::uint32_t /*site*/) noexcept override { pushed = batch; }
  void pop() noexcept override { ++pops; }
  std::uint32_t pushed = 0;
  int pops = 0;
};

class TimelineOfASwapIn : public Inside {
 protected:
  [[nodiscard]] static std::filesystem::path file(const char* name) {
    return std::filesystem::temp_directory_path() /
           ("weir-swap-in-" + std::to_string(getpid()) + "-" + name);
  }
  /// The records of one kind in the first process of a file.
  static std::vector<TimelineRecord> records_of(const timeline::Timeline& read, Kind kind) {
    std::vector<TimelineRecord> found;
    for (const TimelineRecord& record : read.processes.at(0).records) {
      if (record.kind == kind) found.push_back(record);
    }
    return found;
  }
};

TEST_F(TimelineOfASwapIn, AllocationsOfABatchCarryItsNumber) {
  ASSERT_NO_FATAL_FAILURE(start());
  const ToldTimeline told;
  static Marker marker;
  detail::timeline_marker.store(&marker);
  const CUdeviceptr before = allocate(kMib);
  ASSERT_TRUE(begin_batch("step"));
  const CUdeviceptr inside = allocate(kMib);
  end_batch();
  const CUdeviceptr after = allocate(kMib);
  detail::timeline_marker.store(nullptr);
  const auto admitted = told.of(Kind::kAdmit);
  ASSERT_EQ(admitted.size(), 1U);
  EXPECT_EQ(told.text(admitted[0].name), "step");
  std::map<std::uint64_t, std::uint32_t> batches;
  for (const auto& record : told.of(Kind::kAllocate)) batches[record.id] = record.batch;
  EXPECT_EQ(batches[before], 0U);
  EXPECT_EQ(batches[inside], admitted[0].batch);
  EXPECT_EQ(batches[after], 0U);
  EXPECT_EQ(marker.pushed, admitted[0].batch);
  EXPECT_EQ(marker.pops, 1);
}

TEST_F(TimelineOfASwapIn, ThePoolIsNamedAfterItsGpu) {
  ASSERT_NO_FATAL_FAILURE(start());
  const ToldTimeline told;
  (void)allocate(kMib);
  for_each_source([&](TimelineSource& source) { source.record_live(told.itself()); });
  const auto pools = told.of(Kind::kPool);
  ASSERT_FALSE(pools.empty());
  EXPECT_EQ(told.text(pools.back().name), "GPU 0");
  EXPECT_EQ(pools.back().device, 1U);
}

TEST_F(TimelineOfASwapIn, TheVariableBeginsItAndWithoutCuptiTheRestIsThere) {
  const std::string path = file("run.json");
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_TIMELINE", path.c_str()}, {"WEIR_CUPTI", "/nowhere/libcupti.so"}}));
  (void)allocate(kMib);
  ASSERT_NE(timeline::recording(), nullptr);
  EXPECT_EQ(timeline::recording()->finish().lost, 0U);
  const timeline::Timeline read = timeline::read_timeline(path);
  EXPECT_TRUE(read.processes.at(0).complete);
  EXPECT_EQ(records_of(read, Kind::kAllocate).size(), 1U);
  std::filesystem::remove(path);
}

TEST_F(TimelineOfASwapIn, AFileThatCannotBeWrittenDoesNotEndTheProgram) {
  const std::string path = file("folder.json");
  std::filesystem::create_directory(path);
  ::testing::internal::CaptureStderr();
  start({{"WEIR_TIMELINE", path.c_str()}, {"WEIR_CUPTI", "/nowhere/libcupti.so"}});
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_NE(said.find("no timeline is recorded: WEIR_TIMELINE='" + path + "'"), std::string::npos)
      << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_EQ(timeline::recording(), nullptr);
  EXPECT_NE(allocate(kMib), 0U);
  std::filesystem::remove(path);
}

TEST_F(TimelineOfASwapIn, TheProgramBeginsAndStopsIt) {
  const std::string path = file("part.json");
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_CUPTI", "/nowhere/libcupti.so"}}));
  const CUdeviceptr before = allocate(kMib);
  EXPECT_TRUE(start_timeline(path));
  const CUdeviceptr inside = allocate(2 * kMib);
  EXPECT_FALSE(start_timeline("other.json")) << "a process has one file";
  stop_timeline();
  (void)allocate(kMib);
  EXPECT_TRUE(start_timeline("")) << "it goes on";
  stop_timeline();
  (void)timeline::recording()->finish();
  const timeline::Timeline read = timeline::read_timeline(path);
  const auto allocated = records_of(read, Kind::kAllocate);
  ASSERT_EQ(allocated.size(), 1U);
  EXPECT_EQ(allocated[0].id, inside);
  const auto live = records_of(read, Kind::kLive);
  EXPECT_TRUE(std::ranges::any_of(live, [&](const auto& r) { return r.id == before; }))
      << "it is from before";
  std::filesystem::remove(path);
}

TEST_F(TimelineOfASwapIn, TheLogOfItsAllocationsIsWritten) {
  const std::string path = file("log");
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_ALLOC_LOG", path.c_str()}}));
  free(allocate(kMib));
  EXPECT_GT(std::filesystem::file_size(path), 0U);
  std::filesystem::remove(path);
}

TEST_F(TimelineOfASwapIn, WithoutANameNothingBegins) {
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_FALSE(start_timeline(""));
  EXPECT_FALSE(start_timeline("run.txt"));
  stop_timeline();
  EXPECT_EQ(timeline::recording(), nullptr);
}

}  // namespace
}  // namespace weir::preload::testing
