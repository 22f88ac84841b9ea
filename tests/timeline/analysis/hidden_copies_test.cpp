// The share of copying that is hidden behind computing.

#include <gtest/gtest.h>

#include <utility>

#include "timeline/support/made_timeline.hpp"
#include "tools/timeline/analysis/tasks.hpp"

namespace weir::timeline {
namespace {

constexpr std::uint64_t kCompute = 1;
constexpr std::uint64_t kCopyIn = 2;
constexpr std::uint64_t kOther = 3;
constexpr Span kAlways{0, UINT64_MAX};

/// The works of GPU 0.
class GpuWorks {
 public:
  GpuWorks& add(TimelineKind kind, std::uint64_t stream, Span span,
                TimelineCopy direction = TimelineCopy::kOther) {
    process_.records.push_back({.begin = span.begin,
                                .end = span.end,
                                .stream = stream,
                                .device = 1,
                                .kind = kind,
                                .detail = static_cast<std::uint8_t>(direction)});
    return *this;
  }
  GpuWorks& compute(Span span, std::uint64_t stream = kCompute) {
    return add(TimelineKind::kKernel, stream, span);
  }
  GpuWorks& copy(Span span, std::uint64_t stream = kCopyIn,
                 TimelineCopy direction = TimelineCopy::kToDevice) {
    return add(TimelineKind::kCopy, stream, span, direction);
  }
  /// Copying and hidden.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> figures(Span during = kAlways) {
    testing::sort_records(process_);
    const HiddenCopies found = hidden_copies(Index(process_), {.device = 1}, during);
    return {found.copying, found.hidden};
  }

 private:
  Process process_;
};

using Figures = std::pair<std::uint64_t, std::uint64_t>;

TEST(TimelineHiddenCopies, AreHiddenWhileTheDeviceComputes) {
  EXPECT_EQ(GpuWorks().copy({10, 20}).figures(), Figures(10, 0));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({0, 30}).figures(), Figures(10, 10));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({15, 30}).figures(), Figures(10, 5));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({0, 12}).compute({19, 25}).figures(), Figures(10, 3));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({20, 30}).compute({0, 10}).figures(), Figures(10, 0));
  EXPECT_EQ(GpuWorks().compute({0, 30}).figures(), Figures(0, 0)) << "nothing is copied";
}

TEST(TimelineHiddenCopies, ATimeCountsOnceHoweverManyCopyOrComputeInIt) {
  GpuWorks works;
  works.copy({10, 20}).copy({15, 30}, kOther).copy({40, 50});
  works.compute({12, 18}).compute({14, 16}, kOther).compute({17, 22}, kOther).compute({45, 60});
  EXPECT_EQ(works.figures(), Figures(20 + 10, 10 + 5));
}

TEST(TimelineHiddenCopies, OtherCopiesAndFillsNeitherCountNorHide) {
  GpuWorks works;
  works.copy({10, 20});
  for (const TimelineCopy direction :
       {TimelineCopy::kFromDevice, TimelineCopy::kOnDevice, TimelineCopy::kPeer}) {
    works.copy({0, 100}, kOther, direction);
  }
  works.add(TimelineKind::kSet, kCompute, {0, 100});
  EXPECT_EQ(works.figures(), Figures(10, 0));
}

TEST(TimelineHiddenCopies, OnlyTheAskedTimeAndDeviceCount) {
  GpuWorks works;
  works.copy({10, 20}).copy({90, 110}).compute({0, 15}).compute({95, 105});
  EXPECT_EQ(works.figures({12, 100}), Figures(8 + 10, 3 + 5));
  EXPECT_EQ(works.figures({20, 90}), Figures(0, 0));
  Process process;
  process.records = {
      {.begin = 0, .end = 9, .stream = 1, .device = 2, .kind = TimelineKind::kKernel}};
  EXPECT_EQ(hidden_copies(Index(process), {.device = 1}, kAlways).copying, 0U);
}

TEST(TimelineHiddenCopies, OfTheSchedulersStreamsThoseThatCopyAreCopies) {
  Process process;
  process.names = {"", "copy-in", "compute"};
  const auto on = [&](std::uint64_t stream, TimelineKind kind, Span span, std::uint32_t name = 0) {
    process.records.push_back({.begin = span.begin,
                               .end = span.end,
                               .stream = stream,
                               .name = name,
                               .source = 7,
                               .kind = kind});
  };
  on(kCopyIn, TimelineKind::kStream, {}, 1);
  on(kCompute, TimelineKind::kStream, {}, 2);
  on(kCompute, TimelineKind::kExecute, {0, 14});
  on(kCopyIn, TimelineKind::kExecute, {10, 20});
  const HiddenCopies found = hidden_copies(Index(process), {.source = 7}, kAlways);
  EXPECT_EQ(found.copying, 10U);
  EXPECT_EQ(found.hidden, 4U);
}

}  // namespace
}  // namespace weir::timeline
