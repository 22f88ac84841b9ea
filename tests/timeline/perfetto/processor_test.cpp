// Perfetto's real trace processor opens our files and finds the contents of the records.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/child_process.hpp"
#include "tests/timeline/chrome/files.hpp"
#include "tests/timeline/chrome/random_process.hpp"
#include "tests/timeline/support/counted_processes.hpp"
#include "tests/timeline/support/made_timeline.hpp"
#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/model/tracks.hpp"
#include "tools/timeline/perfetto/perfetto.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

using timeline::Process;
using timeline::testing::made_process;

/// A trace and its queries.
struct Load {
  std::string trace;  ///< the bytes of a file of any format that Perfetto reads
  std::vector<std::string> queries;
};

/// The results of queries.
struct Queried {
  std::string left_out;  ///< why the trace processor is not available; empty if it ran
  nlohmann::json rows;   ///< for each trace, an array for each query, of objects
};

/// All statistics of errors and lost data that are not zero.
constexpr const char* kTroubles =
    "SELECT name, idx, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

/// The standard output without newlines at its end.
std::string output_of(const Finished& end) {
  return end.out.substr(0, end.out.find_last_not_of('\n') + 1);
}

/// A program of PATH, such as node, with the variables of this one.
Finished run(Words words) {
  words.insert(words.begin(), {"-c", "\"$0\" \"$@\""});
  Variables variables;
  for (const char* name : {"PATH", "HOME"}) {
    if (const char* value = std::getenv(name)) variables.emplace(name, value);
  }
  return ChildProcess(words, {.program = "/bin/sh", .environment = variables}).wait();
}

/// Loads the traces in turn and runs the queries of each. A trace that does not load fails the
/// test.
Queried query_traces(const std::vector<Load>& loads) {
  const std::string tests = WEIR_PERFETTO_TESTS;
  const Finished fetched = run({tests + "/fetch_processor", WEIR_PERFETTO_FOLDER});
  if (fetched.exit_code != 0) return {.left_out = fetched.out + fetched.err, .rows = {}};

  Words words{"node", tests + "/trace_processor.js", output_of(fetched)};
  const TemporaryDirectory folder;
  for (const Load& load : loads) {
    if (words.size() > 3) words.emplace_back("--");
    words.push_back(folder.file(std::to_string(words.size()) + ".trace"));
    write_file(words.back(), load.trace);
    words.insert(words.end(), load.queries.begin(), load.queries.end());
  }
  const Finished ran = run(words);
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  Queried queried{.left_out = {}, .rows = nlohmann::json::parse(ran.out, nullptr, false)};
  EXPECT_EQ(queried.rows.size(), loads.size()) << ran.out;
  return queried;
}

enum class Format { kChrome, kPerfetto };

std::string written(Format format, const std::vector<Process>& processes) {
  timeline::testing::StringSink sink;
  const auto writer = format == Format::kChrome ? timeline::make_chrome_writer(sink)
                                                : timeline::make_perfetto_writer(sink);
  timeline::testing::write_in_flushes(processes, *writer);
  return sink.text;
}

/// A profiler's records of a GPU: two launches, a graph of two kernels, a call that starts nothing,
/// a kernel without a call, and an operation with the number of a launch. Then a second window with
/// the same numbers: a launch, and a kernel without a call.
Process profiled_run() {
  Process process;
  process.names = {"", "launch", "graph", "query", "gemm", "copy", "relu", "lost", "dense"};
  process.complete = true;
  const auto add = [&](TimelineKind kind, std::uint64_t begin, std::uint64_t end, std::uint64_t id,
                       std::uint32_t name) {
    const bool on_thread = kind == TimelineKind::kCall || kind == TimelineKind::kSubmit;
    process.records.push_back({.begin = begin,
                               .end = end,
                               .id = id,
                               .stream = on_thread ? 0U : 7U,
                               .name = name,
                               .thread = on_thread ? 1U : 0U,
                               .device = static_cast<std::uint16_t>(on_thread ? 0 : 1),
                               .kind = kind});
  };
  // A millisecond apart, since counters have one sample in 100 us.
  constexpr std::uint64_t kMs = 1'000'000;
  add(TimelineKind::kCall, 1 * kMs, 2 * kMs, 1, 1);
  add(TimelineKind::kCall, 3 * kMs, 4 * kMs, 2, 1);
  add(TimelineKind::kCall, 5 * kMs, 6 * kMs, 3, 3);
  add(TimelineKind::kCall, 7 * kMs, 8 * kMs, 4, 2);
  add(TimelineKind::kSubmit, 9 * kMs, 10 * kMs, 1, 8);
  add(TimelineKind::kKernel, 11 * kMs, 21 * kMs, 1, 4);
  add(TimelineKind::kCopy, 21 * kMs, 26 * kMs, 2, 5);
  add(TimelineKind::kKernel, 26 * kMs, 28 * kMs, 4, 4);
  add(TimelineKind::kKernel, 28 * kMs, 29 * kMs, 4, 6);
  add(TimelineKind::kKernel, 29 * kMs, 30 * kMs, 5, 7);
  add(TimelineKind::kStop, 31 * kMs, 31 * kMs, 0, 0);
  add(TimelineKind::kStart, 40 * kMs, 40 * kMs, 0, 0);
  add(TimelineKind::kCall, 41 * kMs, 42 * kMs, 1, 1);
  add(TimelineKind::kKernel, 43 * kMs, 44 * kMs, 1, 6);
  add(TimelineKind::kKernel, 44 * kMs, 45 * kMs, 3, 7);
  return process;
}

/// What a viewer must show of a run.
struct Expected {
  std::size_t slices = 0;  ///< but for those of batches
  std::size_t flows = 0, batches = 0, submits = 0, stalls = 0, barriers = 0;
  std::uint64_t busy = 0;  ///< nanoseconds of slices of the stream `compute`
  std::map<std::string, std::uint64_t> most;

  void count(Format format, const Process& process) {
    std::set<std::uint64_t> submitted;
    for (const TimelineRecord& record : process.records) {
      const TimelineKind kind = record.kind;
      // A batch is a slice while it is open, and one while it is queued.
      const bool begins = kind == TimelineKind::kAdmit || kind == TimelineKind::kClose;
      if (begins) ++batches;
      // Moments are slices without length: all in JSON, the few ones in .pftrace.
      const bool moment = format == Format::kChrome
                              ? !begins && kind != TimelineKind::kSettle
                              : kind == TimelineKind::kReserve || kind == TimelineKind::kStart;
      if (timeline::is_slice(kind) || moment) ++slices;
      if (kind == TimelineKind::kStall) ++stalls;
      if (kind == TimelineKind::kBarrier) ++barriers;
      if (kind == TimelineKind::kSubmit) {
        ++submits;
        submitted.insert(record.id);
      }
      if (kind == TimelineKind::kExecute) {
        if (submitted.contains(record.id)) ++flows;
      }
      // A stream's own slices: what it did, and what it waited for.
      const bool of_stream = kind == TimelineKind::kExecute || kind == TimelineKind::kStreamWait;
      if (of_stream && record.stream == 1) busy += record.end - record.begin;
      if (record.source == 2) count_statistics(record);
    }
  }

 private:
  void count_statistics(const TimelineRecord& record) {
    const auto at_least = [&](const char* gauge, std::uint64_t value) {
      most[gauge] = std::max(most[gauge], value);
    };
    at_least("allocated", record.allocated);
    at_least("awaiting", record.awaiting);
    at_least("cached", record.cached);
    at_least("reserved", record.allocated + record.awaiting + record.cached);
    if (record.kind == TimelineKind::kPool) at_least("budget", record.bytes);
  }
};

/// The queries that expect_shown reads, in its order.
std::vector<std::string> queries() {
  return {
      kTroubles,
      "SELECT count(*) AS n FROM slice",
      "SELECT count(*) AS n FROM flow",
      "SELECT t.name AS name, max(c.value) AS most FROM counter c JOIN counter_track t "
      "ON c.track_id = t.id GROUP BY t.name",
      // The stream is a track in .pftrace, and a thread in JSON.
      "SELECT sum(dur) AS busy FROM slice s JOIN track t ON s.track_id = t.id LEFT JOIN "
      "thread_track tt ON tt.id = t.id LEFT JOIN thread USING (utid) "
      "WHERE coalesce(thread.name, t.name) = 'compute'",
      "SELECT count(DISTINCT upid) AS n FROM process WHERE name LIKE '%made-train%'",
      "SELECT count(*) AS n FROM slice WHERE dur < 0",
      "SELECT category, count(*) AS n FROM slice WHERE category IN "
      "('open', 'in flight', 'submit', 'stall', 'barrier') GROUP BY category",
      // The arguments of a stall and of a batch's slice.
      "SELECT DISTINCT a.key AS key, a.display_value AS value FROM slice s JOIN args a USING "
      "(arg_set_id) WHERE s.category = 'stall' AND s.name = 'train' AND "
      "a.display_value IS NOT NULL",
      "SELECT count(DISTINCT s.id) AS n FROM slice s JOIN args a USING (arg_set_id) WHERE "
      "s.category IN ('submit', 'barrier', 'open') AND a.key IN ('debug.batch', 'args.batch')",
  };
}

/// The maximum of each gauge, whatever the format calls the counter.
std::map<std::string, std::uint64_t> gauges(const nlohmann::json& rows) {
  std::map<std::string, std::uint64_t> most;
  for (const auto& row : rows) {
    const auto name = row["name"].get<std::string>();
    std::string gauge = name;
    for (const char* known : {"allocated", "awaiting", "cached", "reserved", "budget"}) {
      if (name.ends_with(known)) gauge = known;
    }
    most[gauge] = std::max(most[gauge], row["most"].get<std::uint64_t>());
  }
  return most;
}

void expect_shown(const nlohmann::json& rows, const Expected& expected, std::size_t processes) {
  EXPECT_EQ(rows[0], nlohmann::json::array());
  EXPECT_EQ(rows[1][0]["n"], expected.slices + expected.batches);
  EXPECT_EQ(rows[2][0]["n"], expected.flows);
  const std::map<std::string, std::uint64_t> most = gauges(rows[3]);
  for (const auto& [name, value] : expected.most) {
    ASSERT_TRUE(most.contains(name)) << name << " in " << rows[3];
    EXPECT_EQ(most.at(name), value) << name;
  }
  EXPECT_EQ(rows[4][0]["busy"], expected.busy);
  EXPECT_EQ(rows[5][0]["n"], processes);
  EXPECT_EQ(rows[6][0]["n"], 0);
  std::map<std::string, std::size_t> kinds;
  for (const auto& row : rows[7]) kinds[row["category"]] = row["n"].get<std::size_t>();
  EXPECT_EQ(kinds["stall"], expected.stalls);
  EXPECT_EQ(kinds["barrier"], expected.barriers);
  EXPECT_EQ(kinds["submit"], expected.submits);
  EXPECT_EQ(kinds["open"] + kinds["in flight"], expected.batches);
  std::set<std::string> carried;
  for (const auto& row : rows[8]) carried.insert(row["value"].get<std::string>());
  for (const std::string value : {"3", "8388608"}) {  // the batch, and its bytes
    EXPECT_TRUE(carried.contains(value)) << value << " in " << rows[8];
  }
  EXPECT_TRUE(carried.contains("run-ahead") || carried.contains("run_ahead")) << rows[8];
  EXPECT_TRUE(carried.contains("trainer/loop.py:80") ||
              (carried.contains("trainer/loop.py") && carried.contains("80")))
      << rows[8];
  EXPECT_EQ(rows[9][0]["n"], expected.submits + expected.barriers + expected.batches / 2);
}

/// The arrows, and the peak of queued device time: 10, 5, 2 and 1 ms from the calls.
std::vector<std::string> queries_of_profiled() {
  return {kTroubles,
          "SELECT a.name AS a, b.name AS b FROM flow f JOIN slice a ON f.slice_out = a.id JOIN "
          "slice b ON f.slice_in = b.id ORDER BY a.ts, b.ts",
          "SELECT max(c.value) AS most FROM counter c JOIN counter_track t ON c.track_id = t.id "
          "WHERE t.name LIKE 'queued device time%'"};
}

/// The values of the counter of memory from the driver, in order.
std::vector<std::string> queries_of_driver_memory() {
  return {kTroubles,
          "SELECT c.ts AS at, c.value AS bytes FROM counter c JOIN counter_track t ON "
          "c.track_id = t.id WHERE t.name LIKE 'driver memory%' ORDER BY c.ts"};
}

void expect_driver_memory(const nlohmann::json& rows) {
  EXPECT_EQ(rows[0], nlohmann::json::array());
  constexpr std::array<std::uint64_t, 7> kShown{1, 9, 9, 13, 5, 4, 4};
  ASSERT_EQ(rows[1].size(), kShown.size());
  for (std::size_t i = 0; i < kShown.size(); ++i) {
    EXPECT_EQ(rows[1][i]["bytes"], kShown.at(i) * timeline::testing::kMiB) << rows[1];
    EXPECT_EQ(rows[1][i]["at"], (i + 1) * timeline::testing::kStep) << rows[1];
  }
}

/// The values of the counter of the run-ahead target, in order.
std::vector<std::string> queries_of_target() {
  return {kTroubles,
          "SELECT c.ts AS at, c.value AS value FROM counter c JOIN counter_track t ON "
          "c.track_id = t.id WHERE t.name LIKE 'run-ahead target%' ORDER BY c.ts"};
}

void expect_target(const nlohmann::json& rows, Format format) {
  EXPECT_EQ(rows[0], nlohmann::json::array());
  const double of_ns = format == Format::kPerfetto ? 1 : 1e-6;  // JSON has milliseconds
  std::size_t shown = 0;
  for (std::size_t i = 0; i < timeline::testing::kTargets.size(); ++i) {
    const std::uint64_t target = timeline::testing::kTargets.at(i);
    if (target == 0) continue;
    ASSERT_LT(shown, rows[1].size());
    const auto& row = rows[1][shown++];
    EXPECT_EQ(row["at"], (i + 1) * timeline::testing::kStep) << rows[1];
    EXPECT_DOUBLE_EQ(row["value"].get<double>(), static_cast<double>(target) * of_ns) << rows[1];
  }
  EXPECT_EQ(rows[1].size(), shown) << rows[1];
}

void expect_profiled(const nlohmann::json& rows, Format format) {
  EXPECT_EQ(rows[0], nlohmann::json::array());
  nlohmann::json arrows{{{"a", "launch"}, {"b", "gemm"}},
                        {{"a", "launch"}, {"b", "copy"}},
                        {{"a", "graph"}, {"b", "gemm"}}};
  // Our file for Perfetto alone also connects the graph's other kernels.
  if (format == Format::kPerfetto) arrows.push_back({{"a", "gemm"}, {"b", "relu"}});
  arrows.push_back({{"a", "launch"}, {"b", "relu"}});
  EXPECT_EQ(rows[1], arrows);
  const double of_ms = format == Format::kPerfetto ? 1e6 : 1;
  EXPECT_EQ(rows[2][0]["most"], 18 * of_ms);
}

/// Files of one run, of three with the same process id, of random records, a truncated one, one of
/// a profiler's records and one of driver memory.
void expect_shown(Format format) {
  const std::vector<std::vector<Process>> files{
      {made_process({.seed = 21, .batches = 200, .barrier_every = 4})},
      {made_process({.batches = 30}), made_process({.seed = 2}), made_process({.batches = 10})}};
  std::vector<Load> loads;
  for (const auto& processes : files) loads.push_back({written(format, processes), queries()});
  const std::string slices = "SELECT count(*) AS n FROM slice";
  const std::string kernels = "SELECT count(*) AS n FROM slice WHERE name = 'kernel<float, 4>'";
  std::mt19937_64 random(5);
  std::vector<Process> any(1 + random() % 3);
  for (Process& process : any) {
    process = timeline::testing::random_process(random, {.records = 300});
  }
  loads.push_back({written(format, any), {kTroubles, slices, kernels}});
  const std::string whole = written(format, {made_process({.batches = 400})});
  loads.push_back({whole.substr(0, whole.size() * 2 / 3), {slices}});
  loads.push_back({written(format, {profiled_run()}), queries_of_profiled()});
  loads.push_back(
      {written(format, {timeline::testing::driver_memory_process()}), queries_of_driver_memory()});
  loads.push_back({written(format, {timeline::testing::target_process()}), queries_of_target()});
  loads.push_back(
      {written(format, {timeline::testing::process_without_targets()}), queries_of_target()});

  const Queried queried = query_traces(loads);
  if (!queried.left_out.empty()) GTEST_SKIP() << queried.left_out;
  ASSERT_EQ(queried.rows.size(), loads.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    SCOPED_TRACE(std::to_string(files[i].size()) + " processes");
    Expected expected;
    for (const Process& process : files[i]) expected.count(format, process);
    expect_shown(queried.rows[i], expected, files[i].size());
  }
  EXPECT_EQ(queried.rows[2][0], nlohmann::json::array());
  EXPECT_GT(queried.rows[2][1][0]["n"], 300);
  EXPECT_GT(queried.rows[2][2][0]["n"], 0);
  EXPECT_GT(queried.rows[3][0][0]["n"], 100);
  expect_profiled(queried.rows[4], format);
  expect_driver_memory(queried.rows[5]);
  expect_target(queried.rows[6], format);
  EXPECT_EQ(queried.rows[7][1], nlohmann::json::array()) << "a counter without a target";
}

// One test for each format: starting the trace processor takes most of the time.
TEST(TraceProcessor, FindsInPftraceWhatTheRecordsSay) { expect_shown(Format::kPerfetto); }
TEST(TraceProcessor, FindsInJsonWhatTheRecordsSay) { expect_shown(Format::kChrome); }

}  // namespace
}  // namespace weir::testing
