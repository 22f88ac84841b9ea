// The drawn data: thinned series and runs keep what matters, and blocks are those of the analysis.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>

#include "timeline/page/sample_pages.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/page/activity_rows.hpp"
#include "tools/timeline/page/data.hpp"
#include "tools/timeline/page/memory.hpp"
#include "tools/timeline/page/series.hpp"

namespace weir::timeline {
namespace {

constexpr std::uint64_t kDuration = 1'000'000;

// The largest value in force at any time of a column, and the last.
struct ColumnFacts {
  std::int64_t most = INT64_MIN;
  std::int64_t least = INT64_MAX;
  std::int64_t last = 0;
  std::int64_t most_third = INT64_MIN;
  friend bool operator==(const ColumnFacts&, const ColumnFacts&) = default;
};
std::map<std::uint32_t, ColumnFacts> facts_of(const Series& series, Columns columns) {
  std::map<std::uint32_t, ColumnFacts> facts;
  for (std::size_t i = 0; i < series.rows(); ++i) {
    const auto row = series.row(i);
    ColumnFacts& one = facts[columns.of(static_cast<std::uint64_t>(row[0]))];
    one.most = std::max(one.most, row[1]);
    one.least = std::min(one.least, row[1]);
    one.most_third = std::max(one.most_third, row[2]);
    one.last = row[1];
  }
  return facts;
}

std::set<std::vector<std::int64_t>> rows_of(const Series& series) {
  std::set<std::vector<std::int64_t>> rows;
  for (std::size_t i = 0; i < series.rows(); ++i) {
    rows.emplace(series.row(i).begin(), series.row(i).end());
  }
  return rows;
}

Series random_series(std::uint64_t seed, std::size_t rows) {
  std::mt19937_64 random(seed);
  Series series{3, {}};
  std::vector<std::int64_t> times(rows);
  for (std::int64_t& time : times) {
    time = static_cast<std::int64_t>(random() % kDuration);
  }
  std::sort(times.begin(), times.end());
  for (const std::int64_t time : times) {
    series.values.insert(series.values.end(), {time, static_cast<std::int64_t>(random() % 1000),
                                               static_cast<std::int64_t>(random() % 1000)});
  }
  return series;
}

TEST(Series, KeepsTheLargestSmallestAndLastRowOfEachColumnAsTheyWere) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Series whole = random_series(seed, 5000);
    const Columns columns{kDuration, 64};
    const Series thinned = thin(whole, columns);
    EXPECT_LE(thinned.rows(), 4U * 64U);
    EXPECT_EQ(facts_of(thinned, columns), facts_of(whole, columns));
    // Each row is a real moment: a page also draws the difference of two columns.
    const auto rows = rows_of(whole);
    const auto kept = rows_of(thinned);
    EXPECT_TRUE(std::includes(rows.begin(), rows.end(), kept.begin(), kept.end()));
  }
}

TEST(Series, ThinnedTwiceIsThinnedOnce) {
  const Series whole = random_series(7, 5000);
  const Columns coarse{kDuration, 50};
  EXPECT_EQ(facts_of(thin(thin(whole, {kDuration, 400}), coarse), coarse),
            facts_of(thin(whole, coarse), coarse));
}

TEST(Runs, KeepEverySliceThatIsWiderThanAColumn) {
  std::vector<weir::timeline::Run> runs;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    weir::timeline::Run run;
    run.begin = i * 1000;
    run.end = run.begin + (i == 500 ? 30'000 : 400);
    run.busy = run.longest = run.end - run.begin;
    run.name = static_cast<std::uint32_t>(i);
    add_to_row(runs, run, {kDuration, 100});
  }
  EXPECT_LE(runs.size(), 102U);
  std::uint64_t busy = 0;
  std::uint64_t count = 0;
  for (const weir::timeline::Run& run : runs) {
    busy += run.busy;
    count += run.count;
  }
  EXPECT_EQ(busy, 999U * 400U + 30'000U);
  EXPECT_EQ(count, 1000U);
  EXPECT_TRUE(std::any_of(runs.begin(), runs.end(), [](const weir::timeline::Run& run) {
    return run.name == 500 && run.count == 1;
  }));
}

TEST(Pack, Base64IsThatOfItsStandard) {
  const std::array<std::pair<const char*, const char*>, 7> cases{{{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"fooba", "Zm9vYmE="},
                                                                  {"foobar", "Zm9vYmFy"}}};
  for (const auto& [text, encoded] : cases) {
    EXPECT_EQ(base64(text), encoded);
  }
}

class Picture : public ::testing::Test {
 protected:
  MemoryPicture picture(const MemoryDetail& detail = {}) {
    const std::vector<PoolRecords> pools = pools_of(process_);
    return picture_of(process_, pools.at(0), batch_kinds(process_), duration(), detail);
  }
  [[nodiscard]] std::uint64_t duration() const {
    std::uint64_t end = 0;
    for (const TimelineRecord& record : process_.records) {
      end = std::max(end, record.end);
    }
    return end;
  }

  Process process_ = testing::throttled_timeline().processes.front();
};

TEST_F(Picture, PeakIsThatOfTheRecordsAndIsInTheSeries) {
  std::uint64_t peak = 0;
  for (const TimelineRecord& record : process_.records) {
    peak = std::max(peak, record.allocated + record.awaiting);
  }
  const MemoryPicture drawn = picture({.columns = 16});
  EXPECT_EQ(drawn.peak, peak);
  std::int64_t most = 0;
  for (std::size_t i = 0; i < drawn.series.rows(); ++i) {
    most = std::max(most, drawn.series.row(i)[kHeldColumn]);
  }
  EXPECT_EQ(static_cast<std::uint64_t>(most), peak);
}

TEST_F(Picture, EveryStackAddsUpToWhatIsHeld) {
  const MemoryPicture drawn = picture();
  ASSERT_GT(drawn.series.rows(), 100U);
  for (std::size_t i = 0; i < drawn.series.rows(); ++i) {
    const auto row = drawn.series.row(i);
    std::size_t column = kStackColumn;
    for (const auto& keys : drawn.keys) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k <= keys.size(); ++k) {
        sum += row[column++];
      }
      ASSERT_EQ(sum, row[kHeldColumn]) << "at " << row[kTimeColumn];
    }
  }
}

// Bytes by label.
std::map<std::string, std::uint64_t> by_label(const Process& process, const MemoryPicture& drawn,
                                              std::uint64_t time) {
  std::map<std::string, std::uint64_t> sums;
  for (const BlockLife* life : alive_at(drawn.lives, time, SIZE_MAX)) {
    sums[std::string(process.name(life->block.name))] += life->block.bytes;
  }
  return sums;
}

TEST_F(Picture, BlocksAtAMomentAreThoseOfTheAnalysis) {
  const MemoryPicture drawn = picture();
  EXPECT_TRUE(drawn.moments.empty()) << "a short timeline keeps every block";
  const Index index(process_);
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 0; i < 50; ++i) {
    times.push_back(duration() * i / 50);
  }
  const auto holdings = holders_at(index, index.pools()[0], times, GroupBy::kLabel, 100);
  ASSERT_EQ(holdings.size(), times.size());
  for (const Holding& holding : holdings) {
    std::map<std::string, std::uint64_t> expected;
    for (const Holder& holder : holding.holders) {
      if (holder.blocks != 0) expected[holder.key] = holder.bytes;
    }
    EXPECT_EQ(by_label(process_, drawn, holding.at), expected) << "at " << holding.at;
  }
}

TEST_F(Picture, KeepsTheLargestBlocksOfEachMoment) {
  const MemoryPicture all = picture();
  MemoryPicture some = picture({.moments = 32, .largest = 5, .lives = 10});
  ASSERT_GE(some.moments.size(), 16U);
  for (int round = 0; round < 2; ++round) {
    for (const Moment& moment : some.moments) {
      const auto kept = alive_at(some.lives, moment.time, 5);
      const auto wanted = alive_at(all.lives, moment.time, 5);
      ASSERT_EQ(kept.size(), wanted.size());
      for (std::size_t i = 0; i < kept.size(); ++i) {
        EXPECT_EQ(kept[i]->block.id, wanted[i]->block.id);
      }
      EXPECT_EQ(moment.blocks, alive_at(all.lives, moment.time, SIZE_MAX).size());
    }
    halve_moments(some, 5);
  }
}

TEST_F(Picture, RowsAreBusyAsLongAsTheirSlices) {
  std::uint64_t told = 0;
  for (const TimelineRecord& record : process_.records) {
    if (record.kind == TimelineKind::kExecute || record.kind == TimelineKind::kStreamWait) {
      told += record.end - record.begin;
    }
  }
  std::uint64_t busy = 0;
  for (const ActivityRow& row : activity_rows(process_, {duration(), 500}).rows) {
    std::uint64_t in_runs = 0;
    for (const weir::timeline::Run& run : row.runs) {
      in_runs += run.busy;
    }
    EXPECT_EQ(in_runs, row.busy) << row.name;
    busy += row.kind == RowKind::kStream ? row.busy : 0;
  }
  EXPECT_EQ(busy, told);
}

TEST_F(Picture, LeavesOutTheRowsThatDoLeast) {
  const ActivityRows rows = activity_rows(process_, {duration(), 500}, 2);
  EXPECT_EQ(rows.rows.size(), 2U);
  EXPECT_EQ(rows.left_out, activity_rows(process_, {duration(), 500}).rows.size() - 2);
}

TEST_F(Picture, CountsBatchesInFlight) {
  const Series batches = batches_over_time(process_, {duration(), 4000});
  std::int64_t most = 0;
  for (std::size_t i = 0; i < batches.rows(); ++i) {
    most = std::max(most, batches.row(i)[1]);
  }
  EXPECT_GE(most, 2);
  EXPECT_LE(most, 4);
}

}  // namespace
}  // namespace weir::timeline
