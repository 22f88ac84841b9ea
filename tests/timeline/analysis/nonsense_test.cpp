// Meaningless records do no harm: the promises about sums hold for them, too.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/random_seed.hpp"
#include "timeline/support/made_timeline.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/analysis/report/report_figures.hpp"

namespace weir::timeline {
namespace {

void expect_sums(const Index& index) {
  const auto devices = idle_by_cause(index);
  for (const DeviceIdle& device : devices) {
    std::uint64_t sum = 0;
    for (const IdleSum& cause : device.causes) sum += cause.total;
    EXPECT_EQ(sum, device.idle);
    EXPECT_LE(device.idle, device.recorded);
  }
  const auto tables = task_tables(index);
  EXPECT_EQ(tables.size(), devices.size() + 1);
  for (std::size_t i = 0; i + 1 < tables.size(); ++i) {
    std::uint64_t sum = 0;
    for (const TaskRow& row : tables[i].rows) sum += row.total;
    EXPECT_EQ(sum, tables[i].busy);
  }
  for (const StreamBusy& stream : stream_busy(index)) EXPECT_LE(stream.busy, stream.recorded);
}

TEST(TimelineNonsense, SumsHoldAndReportsEnd) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  for (std::uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    Timeline timeline;
    timeline.processes.push_back(testing::nonsense(seed + round, 300));
    const Index index(timeline.processes.front());
    expect_sums(index);
    EXPECT_FALSE(report_text(timeline).empty());
    EXPECT_NO_THROW((void)report_json(timeline).dump());
  }
}

TEST(TimelineNonsense, RecordsThatAreNotInOrderGiveTheSameFigures) {
  Process process = testing::made_process({.batches = 12, .barrier_every = 5});
  const auto before = report_json({.processes = {process}});
  std::ranges::reverse(process.records);
  const auto after = report_json({.processes = {process}});
  EXPECT_EQ(before["processes"][0]["summary"], after["processes"][0]["summary"]);
  EXPECT_EQ(before["processes"][0]["barriers"], after["processes"][0]["barriers"]);
}

}  // namespace
}  // namespace weir::timeline
