// The report as text and as JSON, and the summary in words; also of meaningless records.

#include "tools/timeline/analysis/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/random_seed.hpp"
#include "support/table_checks.hpp"
#include "timeline/support/counted_processes.hpp"
#include "timeline/support/made_timeline.hpp"
#include "tools/program/report_table.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/analysis/report/report_figures.hpp"
#include "tools/timeline/analysis/report/summary.hpp"

namespace weir::timeline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Summary a_summary() {
  Summary summary{.complete = true, .pool = "device"};
  summary.peak = 6227702579;
  summary.peak_at = 2'310'000'000;
  summary.budget = 6ULL << 30U;
  summary.peak_batch = 41;
  summary.stalls.admission.at(1) = {12, 40};
  summary.stalled_share = 0.004;
  summary.has_device = true;
  summary.device_time = 1000;
  summary.idle = 7;
  summary.idle_causes.at(static_cast<std::size_t>(IdleCause::kLoader)) = 4;
  summary.idle_causes.at(static_cast<std::size_t>(IdleCause::kBarrier)) = 2;
  summary.idle_causes.at(static_cast<std::size_t>(IdleCause::kRunAhead)) = 1;
  return summary;
}

TEST(TimelineSummary, IsOneLineOfWords) {
  EXPECT_EQ(in_words(a_summary()),
            "peak 5.8 of 6 GiB at 2.31 s, in batch 41; 12 stalls, 0.4% of the time; device idle "
            "0.7%: loader 0.4%, barrier 0.2%, throttled 0.1%; 0 events lost");
}

TEST(TimelineSummary, SaysFirstWhatIsMissing) {
  Summary summary = a_summary();
  summary.complete = false;
  summary.lost = 3;
  EXPECT_THAT(
      in_words(summary),
      StartsWith(
          "the recording was cut off, and its last moments may be missing; 3 events lost: peak"));
}

TEST(TimelineSummary, PrintedPartsAddUpToThePrintedWhole) {
  Summary summary = a_summary();
  summary.device_time = 3000;
  summary.idle = 3;
  summary.idle_causes = {1, 1, 1};
  EXPECT_THAT(in_words(summary), HasSubstr("device idle 0.1%: barrier 0.1%;"));
}

TEST(TimelineSummary, SeveralProcessesHaveALineEachAndOneOfAll) {
  Timeline timeline;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    timeline.processes.push_back(testing::made_process({.batches = 5, .rank = rank}));
  std::vector<Summary> summaries;
  for (const Process& process : timeline.processes) summaries.push_back(summarize(Index(process)));
  const auto lines = in_words(summaries);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[1], StartsWith("made-train (process 4001, rank 1): peak 70 MiB of 1 GiB"));
  EXPECT_THAT(lines[3], StartsWith("3 processes: peaks add up to 210 MiB; 9 stalls"));
}

TEST(TimelineReport, TextAndJsonHaveTheSameFigures) {
  const Timeline timeline = testing::made_timeline({.barrier_every = 10, .fails_in = 7});
  const std::string text = report_text(timeline);
  const auto json = report_json(timeline);
  const auto& process = json["processes"][0];
  EXPECT_THAT(text, StartsWith(wrapped("made-train (process 4000, rank 0): " +
                                           process["summary"]["words"].get<std::string>(),
                                       2)));
  EXPECT_EQ(process["summary"]["stalls"]["all"]["count"], 32);
  EXPECT_EQ(process["books"]["differ"], 0);
  EXPECT_EQ(process["failures"][0]["held"]["holders"][0]["key"], "weights");
  EXPECT_EQ(process["barriers"][0]["count"], 4);
  EXPECT_THAT(text, HasSubstr("  call site           idle after ms  call  times  "));
  EXPECT_THAT(text, HasSubstr("  trainer/loop.py:88           0.90  read      4  "));
  EXPECT_THAT(text, HasSubstr("\n  Totals "));
  const auto idle_after = process["barriers"][0]["idle_after_ns"].get<std::uint64_t>();
  EXPECT_THAT(text, HasSubstr("\nBarriers, the costliest first: trainer/loop.py:88 read 4 times, " +
                              format_time(idle_after) + " of device idle after it\n"));
}

TEST(TimelineReport, EveryTableHasALegend) {
  const std::string text =
      report_text(testing::made_timeline({.barrier_every = 10, .fails_in = 7}), {.wide = true});
  for (const char* first : {"held by", "cause", "state", "stream", "call site", "task"}) {
    weir::testing::expect_legend_of(text, first);
  }
}

TEST(TimelineReport, TablesFitTheTerminalWhateverTheNamesAre) {
  Timeline timeline = testing::made_timeline({.barrier_every = 10, .fails_in = 7});
  for (std::string& name : timeline.processes.front().names)
    if (!name.empty()) name += std::string(300, 'x');
  const std::string text = report_text(timeline);
  EXPECT_GT(weir::testing::lines_of_text(text).size(), 40U);
  EXPECT_LE(weir::testing::widest_line(text), 100U) << text;
  EXPECT_THAT(report_text(timeline, {.wide = true}),
              HasSubstr("\n  weights" + std::string(300, 'x') + "  "));
}

/// Recordings whose reports have every part: of one and of several processes, with barriers, out of
/// memory, cut off, with many events lost, of memory of the driver, and of meaningless records.
std::vector<Timeline> recordings() {
  std::vector<Timeline> all{
      testing::made_timeline({}), testing::made_timeline({.barrier_every = 10, .fails_in = 7}),
      testing::made_timeline({.batches = 2, .tensor_bytes = 1000}),
      testing::made_timeline(
          {.tensor_bytes = 1ULL << 33U, .weight_bytes = 1ULL << 34U, .budget = 1ULL << 37U})};
  Timeline ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ranks.processes.push_back(testing::made_process({.batches = 5, .rank = rank}));
    ranks.processes.back().complete = false;
    ranks.processes.back().lost = 1'234'567'890;
  }
  all.push_back(std::move(ranks));
  Timeline driver;
  driver.processes.push_back(testing::driver_memory_process());
  all.push_back(std::move(driver));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Timeline nonsense;
    nonsense.processes.push_back(testing::nonsense(seed, 400));
    all.push_back(std::move(nonsense));
  }
  return all;
}

TEST(TimelineReport, EveryLineOfEveryReportFitsTheTerminal) {
  for (const Timeline& timeline : recordings()) {
    const std::string text = report_text(timeline);
    EXPECT_LE(weir::testing::widest_line(text), 100U) << text;
  }
}

TEST(TimelineReport, TablesThatAreAlikeHaveTheUnitsOfTheirOneLegend) {
  for (const Timeline& timeline : recordings()) {
    const std::string text = report_text(timeline, {.wide = true});
    std::map<std::string, std::string> heading;  // of a pool's part, by the column
    for (const std::string& line : weir::testing::lines_of_text(text)) {
      if (line.starts_with("Memory of ") || line.starts_with("Out of memory at ")) heading.clear();
      if (!line.starts_with("  held by  ")) continue;
      for (const std::string& one : weir::testing::headings_of(line + "\n", "held by")) {
        if (one == "held by") continue;
        const std::string column = one.substr(0, one.rfind(' '));
        EXPECT_EQ(heading.try_emplace(column, one).first->second, one) << text;
        EXPECT_THAT(text, HasSubstr(one + ": ")) << text;
      }
    }
  }
}

TEST(TimelineReport, WhatIsFromBeforeTheRecordingIsInWideTables) {
  Timeline timeline;
  timeline.processes.push_back(testing::nonsense(1, 400));
  const std::string wide = report_text(timeline, {.wide = true});
  EXPECT_THAT(weir::testing::headings_of(wide, "held by"), Contains(StartsWith("from before ")));
  EXPECT_THAT(report_text(timeline), Not(HasSubstr("from before")));
}

TEST(TimelineReport, TheAllocatorHasNoColumnsOfDashes) {
  const std::string text = report_text(testing::made_timeline({.barrier_every = 10}));
  const std::string waits = text.substr(text.find("\nAllocator and waits\n"));
  EXPECT_THAT(
      weir::testing::headings_of(waits, "task"),
      ElementsAre("task", StartsWith("total"), "count", StartsWith("longest"), StartsWith("moved")))
      << waits;
  EXPECT_THAT(waits, Not(HasSubstr("share: ")));
}

TEST(TimelineReport, NotesOfTheRecordingAreSaidBelowTheSummary) {
  Timeline timeline = testing::made_timeline({.batches = 2});
  Process& process = timeline.processes.front();
  testing::MadeNames names(process);
  process.records.push_back(
      {.name = names("7 events were left\x1b out"), .kind = TimelineKind::kNote});
  testing::sort_records(process);
  const auto json = report_json(timeline)["processes"][0];
  const std::string words = json["summary"]["words"];
  EXPECT_THAT(report_text(timeline),
              HasSubstr(wrapped("made-train (process 4000, rank 0): " + words, 2) +
                        "Note: 7 events were left? out\n"));
  EXPECT_EQ(json["notes"], nlohmann::ordered_json::array({"7 events were left? out"}));
}

TEST(TimelineReport, LostEventsAreInTheFirstLineAndInJson) {
  Timeline timeline = testing::made_timeline({.batches = 2});
  timeline.processes.front().lost = 7;
  std::string text = report_text(timeline);
  EXPECT_THAT(text.substr(0, text.find("\n\n")), HasSubstr("7 events lost"));
  EXPECT_EQ(report_json(timeline)["lost"], 7);
  timeline.processes.push_back(timeline.processes.front());
  text = report_text(timeline);
  EXPECT_THAT(text.substr(0, text.find("\n\n")), HasSubstr("14 events lost"));
  EXPECT_EQ(report_json(timeline)["lost"], 14);
}

/// As libweir.so records a program that marks no batch: blocks have a label alone.
Process swapped_in() {
  Process process = testing::made_process({.batches = 5});
  for (TimelineRecord& record : process.records) {
    if (record.kind == TimelineKind::kAllocate || record.kind == TimelineKind::kFree) {
      record.site = record.batch = 0;
    }
  }
  return process;
}

TEST(TimelineReport, TablesWithoutNamesAreOneLineThatSaysWhatNamesThem) {
  const std::string line = "\nNot known here: kind of batch, call site.";
  Timeline timeline;
  timeline.processes.push_back(swapped_in());
  const std::string text = report_text(timeline);
  EXPECT_THAT(text, HasSubstr("\nHolders by label at the peak"));
  EXPECT_THAT(text, Not(HasSubstr("\nHolders by kind of batch")));
  EXPECT_THAT(text, Not(HasSubstr("\nHolders by call site")));
  EXPECT_THAT(text, HasSubstr(line));
  const std::string named = report_text(testing::made_timeline({.batches = 5}));
  EXPECT_THAT(named, HasSubstr("\nHolders by kind of batch"));
  EXPECT_THAT(named, HasSubstr("\nHolders by call site"));
  EXPECT_THAT(named, Not(HasSubstr("Not known here")));
}

TEST(TimelineReport, APoolThatNeverReservedIsLeftOut) {
  Timeline timeline = testing::made_timeline({.batches = 2});
  Process& process = timeline.processes.front();
  testing::MadeNames names(process);
  TimelineRecord empty{.bytes = 1U << 30U, .source = 77, .kind = TimelineKind::kPool};
  empty.name = names("a pool of nothing");
  process.records.push_back(empty);
  testing::sort_records(process);
  ASSERT_EQ(report_json(timeline)["processes"][0]["pools"].size(), 2U);
  const std::string text = report_text(timeline);
  EXPECT_THAT(text, HasSubstr("\nMemory of "));
  EXPECT_THAT(text, Not(HasSubstr("a pool of nothing")));
  EXPECT_THAT(text, Not(HasSubstr(" 0 B\n")));
}

TEST(TimelineReport, MemoryFromTheDriverIsSaidByLibrary) {
  Timeline timeline;
  timeline.processes.push_back(testing::driver_memory_process());
  const std::string text = report_text(timeline);
  EXPECT_THAT(text, HasSubstr("\nMemory from the driver\n"
                              "  peak of device memory                13 MiB\n"
                              "  peak of pinned memory                64 KiB\n"
                              "  peak used of the driver's own pools  2 MiB\n"
                              "  peak reserved by them                32 MiB\n"));
  EXPECT_THAT(text, HasSubstr("\nDevice memory from the driver by library at the peak, 4.00 ms\n"
                              "  library          held MiB  blocks\n"
                              "  libcublas.so.13        12       2\n"
                              "  libnccl.so.2            1       1\n"));
  using Json = nlohmann::json;
  EXPECT_EQ(Json(report_json(timeline)["processes"][0]["driver_memory"]), Json::parse(R"({
    "peak": 13631488, "peak_at_ns": 4000000, "pinned_peak": 65536,
    "pools_used_peak": 2097152, "pools_reserved_peak": 33554432,
    "at_peak_by_library": [{"library": "libcublas.so.13", "bytes": 12582912, "blocks": 2},
                           {"library": "libnccl.so.2", "bytes": 1048576, "blocks": 1}]})"));
}

TEST(TimelineReport, OfManyNotesTheFirstAreSaidAndHowManyMore) {
  Timeline timeline = testing::made_timeline({.batches = 2});
  Process& process = timeline.processes.front();
  testing::MadeNames names(process);
  for (int i = 0; i < 30; ++i)
    process.records.push_back({.name = names("a note"), .kind = TimelineKind::kNote});
  testing::sort_records(process);
  const auto notes = report_json(timeline)["processes"][0]["notes"];
  ASSERT_EQ(notes.size(), 21U);
  EXPECT_EQ(notes.back(), "and 10 more such lines");
}

TEST(TimelineReport, SaysHowManyFailuresItDoesNotShow) {
  const Timeline timeline = testing::made_timeline({.fails_in = 7});
  EXPECT_THAT(report_text(timeline), Not(HasSubstr("Out of memory: ")));
  EXPECT_THAT(report_text(timeline, {.most_rows = 0}), HasSubstr("\nOut of memory: 1 more\n"));
}

TEST(TimelineReport, NamesOfAProgramAreShownAsText) {
  Timeline timeline = testing::made_timeline({.batches = 2});
  for (std::string& name : timeline.processes.front().names)
    if (!name.empty()) name = "</script>\x1b[31m\xff" + name;
  const std::string text = report_text(timeline);
  EXPECT_THAT(text, HasSubstr("</script>?[31m?weights"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_NO_THROW((void)report_json(timeline).dump());
}

TEST(TimelineReport, PrintableKeepsWhatIsValid) {
  EXPECT_EQ(printable("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82"), "??|???|????|??");
  EXPECT_EQ(printable(std::string_view("\0\n\x7f", 3)), "???");
}

TEST(TimelineReport, AnEmptyTimelineIsSaidToBeOne) {
  EXPECT_EQ(report_text({}), "The timeline has no process.\n");
  EXPECT_TRUE(report_json({})["processes"].empty());
  Timeline timeline;
  timeline.processes.emplace_back();
  EXPECT_THAT(report_text(timeline), HasSubstr("no pool memory"));
}

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
