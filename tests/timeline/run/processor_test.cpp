// Perfetto's real trace processor finds the run's own figures in its timeline.

#include "../perfetto/processor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "queued.hpp"
#include "runs.hpp"

namespace weir::timeline::testing {
namespace {

using nlohmann::json;
using weir::testing::Load;
using weir::testing::Queried;

/// The track of a slice: in .pftrace it has the name itself, in JSON its thread has.
constexpr const char* kOnTracks =
    " FROM slice s JOIN track t ON s.track_id = t.id LEFT JOIN thread_track tt ON tt.id = t.id "
    "LEFT JOIN thread USING (utid) WHERE coalesce(thread.name, t.name) ";

/// What is asked, in the order of the queries.
enum Query : std::uint8_t { kTroubles, kSlices, kReasons, kFlows, kExecuted, kBusy, kCounters };

std::vector<std::string> queries(Span measured) {
  const std::string from = std::to_string(measured.begin);
  const std::string to = std::to_string(measured.end);
  return {
      weir::testing::kTroubles,
      "SELECT category, count(*) AS n FROM slice WHERE category IS NOT NULL GROUP BY category",
      // JSON omits a reason of number 0.
      "SELECT coalesce(a.display_value, 'budget') AS why, count(*) AS n FROM slice s "
      "LEFT JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key IN ('debug.why', 'args.detail') "
      "WHERE s.category = 'stall' GROUP BY why",
      "SELECT count(*) AS n FROM flow f JOIN slice s ON f.slice_out = s.id "
      "WHERE s.category = 'submit'",
      std::string("SELECT count(*) AS n") + kOnTracks +
          "IN ('compute', 'copy-in', 'copy-out') AND coalesce(s.category, '') != 'stream_wait'",
      "SELECT sum(max(0, min(s.ts + s.dur, " + to + ") - max(s.ts, " + from + "))) AS busy" +
          kOnTracks + "= 'compute' AND coalesce(s.category, '') != 'stream_wait'",
      "SELECT c.ts AS ts, t.name AS name, c.value AS value FROM counter c "
      "JOIN counter_track t ON c.track_id = t.id ORDER BY c.ts, c.id",
  };
}

/// The peaks of the counters of the device's pool.
class Peaks {
 public:
  explicit Peaks(const json& rows) {
    for (const json& row : rows) add(row);
    finish_sample();
  }
  std::uint64_t allocated = 0, reserved = 0, held = 0;

 private:
  void add(const json& row) {
    const auto name = row["name"].get<std::string>();
    const auto gauge = std::ranges::find_if(
        kGauges, [&](const char* known) { return name.ends_with(std::string(" ") + known); });
    if (gauge == kGauges.end() || name.find("cpu") == std::string::npos) return;
    const auto place = static_cast<std::size_t>(gauge - kGauges.begin());
    // A sample reports gauge by gauge, in a fixed order; between two of them sums do not match.
    const bool in_json = name.starts_with("memory") || name.starts_with("limits");
    const std::size_t order = (in_json ? kJsonOrder : kNativeOrder).at(place);
    if (row["ts"] != time_ || order <= last_) finish_sample();
    time_ = row["ts"];
    last_ = order;
    values_.at(place) = row["value"].get<std::uint64_t>();
  }
  void finish_sample() {
    allocated = std::max(allocated, values_[0]);
    held = std::max(held, values_[0] + values_[1]);
    reserved = std::max(reserved, values_[3]);
    last_ = 0;
  }

  static constexpr std::array kGauges{"allocated", "awaiting", "cached", "reserved"};
  static constexpr std::array<std::size_t, 4> kJsonOrder{1, 2, 3, 4};
  static constexpr std::array<std::size_t, 4> kNativeOrder{1, 3, 2, 4};
  std::array<std::uint64_t, 4> values_{};
  json time_;
  std::size_t last_ = 0;
};

std::map<std::string, std::uint64_t> counts(const json& rows, const char* key) {
  std::map<std::string, std::uint64_t> found;
  for (const json& row : rows) found[row[key]] = row["n"];
  return found;
}

void expect_slices(const json& rows, const json& result) {
  EXPECT_EQ(rows[kTroubles], json::array());
  auto slices = counts(rows[kSlices], "category");
  EXPECT_EQ(slices["submit"], result["operations"]);
  EXPECT_EQ(rows[kFlows][0]["n"], result["operations"]);
  EXPECT_EQ(rows[kExecuted][0]["n"], result["operations"]);
  EXPECT_EQ(slices["open"], result["batches"]);
  EXPECT_EQ(slices["in flight"], result["batches"]);
  EXPECT_EQ(slices["memory_wait"], result["stalls_memory"]["count"]);
  EXPECT_EQ(slices["pool_wait"], result["pool"]["waits"]);
  auto stalls = counts(rows[kReasons], "why");
  EXPECT_EQ(stalls["budget"] + stalls["open"], result["stalls_budget"]["count"]);
  EXPECT_EQ(stalls["run-ahead"] + stalls["run_ahead"], result["stalls_run_ahead"]["count"]);
  EXPECT_EQ(stalls["turn"], result["stalls_turn"]["count"]);
}

void expect_figures(const json& rows, const json& result, Span measured) {
  const Peaks peaks(rows[kCounters]);
  EXPECT_EQ(peaks.allocated, result["peak_allocated_bytes"]);
  EXPECT_EQ(peaks.held, result["peak_held_bytes"]);
  EXPECT_EQ(peaks.reserved, result["peak_reserved_bytes"]);
  const double busy = rows[kBusy][0]["busy"].get<double>() / static_cast<double>(measured.length());
  EXPECT_NEAR(busy, 1 - result["idle_share"].get<double>(), 0.01);
}

/// The queued amount at each sample is the sum of the events.
void expect_queued(const json& rows, const Process& process) {
  std::vector<Sample> batches;
  std::vector<Sample> time;
  for (const json& row : rows) {
    const auto name = row["name"].get<std::string>();
    const auto value = row["value"].get<double>();
    // In JSON the counter's name ends with its unit.
    const double ns = name.ends_with(" ms") ? value * 1e6 : value;
    const Sample sample{.time = row["ts"], .value = static_cast<std::uint64_t>(std::llround(ns))};
    if (name.starts_with("queued batches")) batches.push_back(sample);
    if (name.starts_with("queued device time")) time.push_back(sample);
  }
  queued_batches(process).expect(batches);
  constexpr std::uint64_t kMicrosecond = 1000;  // which JSON rounds to
  queued_time(process).expect(time, kMicrosecond);
}

/// A run that was recorded.
struct Recorded {
  const char* format = nullptr;
  Words settings{};
  json result{};
  Timeline timeline{};
  Span measured{};

  [[nodiscard]] const Process& process() const { return timeline.processes.at(0); }
};

class RunInTheProcessor : public RecordedRuns {
 protected:
  void record(Recorded& run, std::vector<Load>& loads) const {
    const Words words = run_with({{"--batches", "24", "--batch-size", "64", "--json", file("json"),
                                   "--timeline", file(run.format)},
                                  run.settings});
    const Finished finished = weir::testing::run_weir_train(words);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    run.result = figures("json")["result"];
    run.timeline = read_timeline(file(run.format));
    run.measured = measured_span(run.process().info, run.result);
    loads.push_back({weir::testing::read_file(file(run.format)), queries(run.measured)});
  }
};

// One test for all: starting the trace processor takes most of the time.
TEST_F(RunInTheProcessor, HasWhatItsOwnFiguresAndEventsSay) {
  const Words throttled{"--budget", "64MiB"};
  const Words barrier{"--budget", "64MiB", "--policy", "barrier"};
  const Words narrow{"--budget", "19MiB", "--run-ahead", "off"};
  std::vector<Recorded> runs{{"a.json", throttled}, {"a.pftrace", throttled},
                             {"b.json", barrier},   {"b.pftrace", barrier},
                             {"c.json", narrow},    {"c.pftrace", narrow}};
  std::vector<Load> loads;
  for (Recorded& run : runs) ASSERT_NO_FATAL_FAILURE(record(run, loads)) << run.format;
  // There is something to compare.
  EXPECT_GT(runs[0].result["stalls_run_ahead"]["count"], 0);
  // A lone producer's batch starts with the room there is: it waits for the rest in an allocation.
  EXPECT_GT(runs[4].result["pool"]["waits"], 0);
  const Queried queried = weir::testing::query_traces(loads);
  if (!queried.left_out.empty()) GTEST_SKIP() << queried.left_out;
  ASSERT_EQ(queried.rows.size(), loads.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(runs[i].format);
    expect_slices(queried.rows[i], runs[i].result);
    expect_figures(queried.rows[i], runs[i].result, runs[i].measured);
    expect_queued(queried.rows[i][kCounters], runs[i].process());
  }
}

}  // namespace
}  // namespace weir::timeline::testing
