// Promises about the real traces in bench/traces, checked on each. The peaks are computed from the
// files alone, by code that shares nothing with the readers and the engine.

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/replay/measure/engine.hpp"
#include "tools/replay/measure/pools.hpp"
#include "tools/replay/read/readers.hpp"

namespace weir::testing {
namespace {

using replay::Figures;
using replay::PoolSubject;

constexpr Bytes kPage = mib(2);

std::vector<std::string> real_traces() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_TRACES)) {
    if (entry.path().string().ends_with(".csv.gz")) paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

/// The peak of live bytes in a file of lifetimes, each `buffer,start,end,size`.
std::uint64_t peak_by_hand(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;  // at a time; ends are negative
  std::array<char, 256> line{};
  while (gzgets(file, line.data(), static_cast<int>(line.size())) != nullptr) {
    unsigned long start = 0;
    unsigned long end = 0;
    long size = 0;
    if (std::sscanf(line.data(), "%*u,%lu,%lu,%ld", &start, &end, &size) != 3) continue;
    changes.emplace_back(start, size);
    changes.emplace_back(end, -size);
  }
  gzclose(file);
  std::ranges::sort(changes);  // ends at a time precede starts
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, live += change);
  return static_cast<std::uint64_t>(peak);
}

struct OnEachTrace : ::testing::TestWithParam<std::string> {
  /// 1.03 times the peak and two pages for its one stream.
  [[nodiscard]] Bytes bound() const {
    const std::uint64_t peak = peak_by_hand(GetParam());
    return Bytes{peak + peak * 3 / 100} + kPage * 2;
  }
  /// A pool of that name on all of `upstream`.
  [[nodiscard]] static std::unique_ptr<PoolSubject> subject(std::string_view pool,
                                                            std::unique_ptr<Upstream> upstream,
                                                            std::uint64_t lag = 0) {
    PoolOptions base;
    base.budget = BudgetRequest{.percent = 100};
    return std::make_unique<PoolSubject>(
        std::move(upstream), replay::parse_pool_choice("test", pool, base).options, lag);
  }
  [[nodiscard]] static std::unique_ptr<PoolSubject> paged(Bytes capacity, std::uint64_t lag = 0) {
    return subject("paged", std::make_unique<SimulatedUpstream>(capacity), lag);
  }
  const replay::Trace trace = replay::read_traces(GetParam()).front();
};

INSTANTIATE_TEST_SUITE_P(RealTraces, OnEachTrace, ::testing::ValuesIn(real_traces()),
                         [](const auto& path) {
                           const std::string name = std::filesystem::path(path.param).filename();
                           return name.substr(0, name.find('.'));
                         });

TEST_P(OnEachTrace, TheReaderAgreesWithThePeakByHand) {
  EXPECT_EQ(replay::peak_requested(trace).count, peak_by_hand(GetParam()));
  EXPECT_EQ(trace.streams, 1U);
  EXPECT_TRUE(trace.cut.empty());
}

TEST_P(OnEachTrace, PagedReservesHardlyMoreThanIsRequestedAtThePeak) {
  const Figures figures = replay::replay(trace, *paged(gib(1024)));
  EXPECT_FALSE(figures.refusal);
  EXPECT_LE(figures.peak_reserved, bound());
}

TEST_P(OnEachTrace, PagedReservesNoMoreThanThatWhereTheDeviceIsBehind) {
  constexpr std::uint64_t kLag = 200;
  const Figures figures = replay::replay(trace, *paged(gib(1024), kLag));
  EXPECT_FALSE(figures.refusal);
  EXPECT_LE(figures.peak_reserved, bound());
}

TEST_P(OnEachTrace, PagedCompletesWhereThereIsHardlyMoreThanThat) {
  EXPECT_TRUE(replay::completes(trace, *paged(bound())));
}

/// The least capacity at which the best of RMM's pool, arena and binning resources completes it
/// (docs/fragmentation.md, RMM 26.2), in thousandths of the peak.
std::uint64_t best_of_rmm(const std::string& path) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 6> kThousandths{
      {{"conv_varying_images", 1017},
       {"gpt_fixed", 1059},
       {"gpt_recompute_lora", 1178},
       {"gpt_varying_lengths", 1079},
       {"kv_cache", 1084},
       {"moe_uneven", 1073}}};
  for (const auto& [name, thousandths] : kThousandths) {
    if (path.find(name) != std::string::npos) return thousandths;
  }
  return 0;
}

TEST_P(OnEachTrace, BestFitWithAllMemoryCompletesWhereTheBestOfRmmDoes) {
  const Bytes capacity{peak_by_hand(GetParam()) / 1000 * best_of_rmm(GetParam())};
  EXPECT_TRUE(replay::completes(
      trace, *subject("best_fit:all", std::make_unique<SimulatedUpstream>(capacity))));
}

/// Number of this process's mappings of host pages.
std::size_t page_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:weir-pages") != std::string::npos) ++count;
  }
  return count;
}

TEST_P(OnEachTrace, ScatteredMapsStayFarUnderTheLimitOnMappings) {
  constexpr std::size_t kLimit = 65'530;  // vm.max_map_count, unless somebody changed it
  constexpr std::uint64_t kEach = 500;    // a look costs more than an operation
  std::size_t most = 0;
  const auto subject_on_host = subject("paged", std::make_unique<HostUpstream>(gib(16)));
  const Figures figures = replay::replay(trace, *subject_on_host, [&](const replay::Step& step) {
    if (step.operation % kEach == 0) most = std::max(most, page_mappings());
  });
  EXPECT_FALSE(figures.refusal);
  EXPECT_GT(most, 1U);
  EXPECT_LT(most, kLimit / 20);
  RecordProperty("mappings", static_cast<int>(most));
}

/// In heaps of some 30 to 130 pages each page counts. The pages of paged at its peak, with the
/// device behind and not behind.
TEST(SmallTrace, PagedReservesNoMorePagesThanItsPageSays) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> kPages{
      {{"small_gpt_growing", 92},
       {"small_gpt_recompute", 53},
       {"small_gpt_tiny", 29},
       {"small_kv_cache", 45},
       {"small_kv_wide", 132}}};
  for (const auto& [name, pages] : kPages) {
    const auto trace =
        replay::read_traces(std::string(WEIR_TRACES) + "/small/" + std::string(name) + ".csv.gz")
            .front();
    for (const std::uint64_t lag : {0U, 200U}) {
      const Figures figures = replay::replay(trace, *OnEachTrace::paged(gib(1024), lag));
      EXPECT_FALSE(figures.refusal);
      EXPECT_LE(figures.peak_reserved, kPage * pages) << name << ", " << lag << " behind";
    }
  }
}

TEST(RealTrace, FixedShapesMapAndUnmapNothingOnceTheirIterationsRepeat) {
  PoolOptions base;
  base.budget = BudgetRequest{.percent = 100};
  PoolSubject subject(std::make_unique<SimulatedUpstream>(gib(1024)),
                      replay::parse_pool_choice("test", "paged", base).options, 0);
  const replay::Trace trace =
      replay::read_traces(std::string(WEIR_TRACES) + "/gpt_fixed.csv.gz").front();
  // Ten iterations: the first creates the optimizer's state, the next ones find their places.
  std::uint64_t mapped = 0;
  std::uint64_t unmapped = 0;
  const Figures figures = replay::replay(trace, subject, [&](const replay::Step& step) {
    if (step.operation * 2 > trace.operations.size()) return;
    mapped = subject.pool().statistics().mapped_pages;
    unmapped = subject.pool().statistics().unmapped_pages;
  });
  EXPECT_FALSE(figures.refusal);
  EXPECT_GT(mapped, 0U);
  EXPECT_EQ(subject.pool().statistics().mapped_pages, mapped);
  EXPECT_EQ(subject.pool().statistics().unmapped_pages, unmapped);
}

}  // namespace
}  // namespace weir::testing
