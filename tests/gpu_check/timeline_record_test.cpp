// Work that is recorded through the stand-in CUPTI of both generations, which writes what a test
// lets it.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>

#include "allocator/timeline/sink.hpp"
#include "support/environment.hpp"
#include "timeline/cupti/records.hpp"
#include "timeline/cupti/standin_cupti.hpp"
#include "tools/gpu_check/timeline_check/record.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::gpu_check {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using weir::testing::environment_of;
using weir::testing::StandinCupti;
using weir::testing::TemporaryDirectory;

constexpr std::uint64_t kKernelNs = 1000;

StandinCupti& open_standin(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // stays open, as for the recorder
  if (library == nullptr) throw std::runtime_error(dlerror());
  void* const address = dlsym(library, "weir_standin_cupti");
  StandinCupti* (*get)() = nullptr;
  std::memcpy(&get, &address, sizeof get);
  return *get();
}

std::uint64_t steady_now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

class GpuTimelineRecord : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { cupti_.reset(); }

  /// A stretch of kernels, of which CUPTI tells all but `untold`, and their batch if `joined`.
  Stretch run_kernels(std::uint32_t batch, std::uint64_t kernels, std::uint64_t untold,
                      bool joined) {
    const TimelineScope scope(batch, __FILE__, __LINE__);
    Stretch stretch{
        .name = "kernels", .operations = kernels, .batch = batch, .begin_ns = steady_now()};
    stretch.end_ns = stretch.begin_ns + kernels * kKernelNs;
    for (std::uint64_t i = 0; i < kernels - untold; ++i) {
      ++correlation_;
      const std::uint64_t begin = stretch.begin_ns + i * kKernelNs;
      if (joined) emit(weir::testing::external(correlation_, cupti_.external().back()));
      emit(weir::testing::kernel(correlation_, begin, begin + kKernelNs));
    }
    stretch.event_ms = 1e-6 * static_cast<double>(kernels * kKernelNs);
    return stretch;
  }
  template <typename Record>
  void emit(const Record& record) {
    EXPECT_TRUE(cupti_.emit(weir::testing::bytes_of(record)));
  }
  RecordedWork record(const std::function<std::vector<Stretch>()>& work) {
    return record_work(directory_.file("run.pftrace"), environment_of({{"WEIR_CUPTI", GetParam()}}),
                       work);
  }

  StandinCupti& cupti_ = open_standin(GetParam());
  std::uint32_t correlation_ = 0;
  const TemporaryDirectory directory_;
};
INSTANTIATE_TEST_SUITE_P(Generations, GpuTimelineRecord,
                         ::testing::Values(WEIR_STANDIN_OLDER, WEIR_STANDIN_NEWER),
                         [](const auto& path) {
                           return path.param == std::string(WEIR_STANDIN_OLDER) ? "Older" : "Newer";
                         });

TEST_P(GpuTimelineRecord, WhatCuptiTellsIsFoundInTheFile) {
  const RecordedWork found = record([&] {
    return std::vector{run_kernels(1, 50, 0, true), run_kernels(2, 3, 0, true)};
  });
  EXPECT_EQ(found.no_cupti, "");
  EXPECT_EQ(found.refused, "");
  EXPECT_TRUE(found.comparison.complete);
  EXPECT_EQ(found.comparison.strays, 0U);
  ASSERT_EQ(found.comparison.stretches.size(), 2U);
  for (const RecordedStretch& stretch : found.comparison.stretches) {
    EXPECT_EQ(stretch.recorded, stretch.launched.operations);
    EXPECT_EQ(stretch.joined, stretch.launched.operations);
    EXPECT_TRUE(stretch.in_order);
    EXPECT_NEAR(stretch.sum_ms, stretch.launched.event_ms, 1e-9);
    EXPECT_LE(stretch.outside_us, 1);  // one step of the clock that maps ticks to nanoseconds
  }
}

TEST_P(GpuTimelineRecord, WhatItDoesNotTellIsMissed) {
  const RecordedWork found = record([&] { return std::vector{run_kernels(1, 50, 2, false)}; });
  ASSERT_EQ(found.comparison.stretches.size(), 1U);
  EXPECT_EQ(found.comparison.stretches.front().recorded, 48U);
  EXPECT_EQ(found.comparison.stretches.front().joined, 0U);
}

TEST_P(GpuTimelineRecord, WhereAnotherHoldsItTheWorkIsRunAndTheReasonToldOnce) {
  cupti_.hold("a made-up profiler");
  bool ran = false;
  const RecordedWork found = record([&] {
    ran = true;
    return std::vector<Stretch>{{.name = "kernels", .operations = 1}};
  });
  EXPECT_TRUE(ran);
  EXPECT_EQ(found.no_cupti, "");
  EXPECT_THAT(found.refused, StartsWith("kernels and copies are not recorded: "));
  ASSERT_EQ(found.comparison.stretches.size(), 1U);
  EXPECT_EQ(found.comparison.stretches.front().recorded, 0U);
}

TEST(GpuTimelineRecordAlone, WithoutCuptiItSaysWhereItLooked) {
  const TemporaryDirectory directory;
  const RecordedWork found =
      record_work(directory.file("run.json"), environment_of({{"WEIR_CUPTI", "/no/such"}}),
                  [] { return std::vector<Stretch>(1); });
  EXPECT_THAT(found.no_cupti, HasSubstr("/no/such"));
  EXPECT_EQ(found.refused, "");
  EXPECT_TRUE(found.comparison.complete);
  EXPECT_EQ(found.comparison.stretches.size(), 1U);
}

TEST(GpuTimelineRecordAlone, ANameOfNoFormatIsRefusedBeforeTheWork) {
  EXPECT_THROW(
      (void)record_work("run.txt", environment_of({}),
                        []() -> std::vector<Stretch> { throw std::logic_error("it ran"); }),
      UsageError);
}

}  // namespace
}  // namespace weir::gpu_check
