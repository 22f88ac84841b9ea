// `weir replay` as users see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../trainer/temporary_directory.hpp"
#include "gzip.hpp"
#include "support/child_process.hpp"
#include "support/xml.hpp"

namespace weir::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;
class WeirReplay : public ::testing::Test {
 protected:
  WeirReplay() {
    write_file(trace_, "buffer,start,end,size\n1,0,3,1048576\n2,1,4,2097152\n3,5,6,3145728\n");
  }

  static Finished replay(Words words, const Variables& variables = {}) {
    words.insert(words.begin(), "replay");
    return ChildProcess(words, {.environment = variables}).wait();
  }
  static void expect_refused(const Words& words, const std::string& what) {
    SCOPED_TRACE(::testing::PrintToString(words));
    expect_refused_in_one_line(replay(words), {what});
  }

  const TemporaryDirectory directory_;
  const std::string trace_ = directory_.file("trace.csv");
};

TEST_F(WeirReplay, PrintsATableForATrace) {
  const Finished weir = replay({trace_});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_EQ(weir.err, "");
  EXPECT_THAT(weir.out, StartsWith("upstream simulated of 1 TiB, the device 0 operations behind"));
  EXPECT_THAT(weir.out, HasSubstr(trace_ + ": 6 operations, 3 buffers, 1 stream, peak requested "
                                           "3 MiB\n"));
  for (const char* pool : {"unpooled", "naive", "round:24", "round:28"}) {
    EXPECT_THAT(weir.out, ::testing::ContainsRegex("\n" + std::string(pool) + " .* completed\n"));
  }
}

TEST_F(WeirReplay, PrintsOneTableForSeveralTraces) {
  const std::string other = directory_.file("other.csv");
  write_file(other, "buffer,start,end,size\n1,0,3,4194304\n");
  const Finished weir = replay({trace_, other, "--summary", "--pool", "naive,round", "--lag", "3"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_THAT(weir.out, HasSubstr("3 operations behind the host\n"));
  EXPECT_THAT(weir.out, ::testing::ContainsRegex("\npool +trace +other\n"
                                                 "naive +[0-9.]+ / [0-9.]+ +1.000 / 1.000\n"
                                                 "round:24 +[0-9.]+ / [0-9.]+ +1.000 / 1.000\n"));
  // A pool that took all of a tight capacity differs from one that took a whole device.
  const auto table_for = [&](const std::string& capacity) {
    return replay({other, "--summary", "--pool", "naive,best_fit:all", "--capacity", capacity}).out;
  };
  EXPECT_THAT(table_for("6MiB"),
              ::testing::ContainsRegex("\nnaive +1.000 / 1.000\nbest_fit:all +1.500 / 1.000\n"));
  EXPECT_THAT(table_for("1GiB"),
              ::testing::ContainsRegex("\nnaive +1.000 / 1.000\nbest_fit:all +all / 1.000\n"));
}

TEST_F(WeirReplay, ReadsGzipAndSeveralFiles) {
  const std::string packed = directory_.file("packed");
  write_file(packed, gzip_of(read_file(trace_)));
  const Finished weir = replay({packed, trace_, "--pool", "naive", "--json", "-"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  const Json traces = Json::parse(weir.out).at("traces");
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].at("peak_requested_bytes"), traces[1].at("peak_requested_bytes"));
  EXPECT_EQ(traces[0].at("pools").at(0).at("least_capacity").at("bytes"), 4 << 20)
      << "two, of 2 MiB each";
}

TEST_F(WeirReplay, OutOfMemoryIsExitCode3AndInTheTable) {
  const Finished weir = replay({trace_, "--capacity", "2MiB", "--pool", "naive"});
  EXPECT_EQ(weir.exit_code, 3);
  EXPECT_EQ(weir.err, "");
  EXPECT_THAT(weir.out, AllOf(HasSubstr("out of memory\n"),
                              HasSubstr("naive: out of memory at operation 2: asked 2 MiB with "
                                        "1 MiB requested")));
}

TEST_F(WeirReplay, SettingsComeFromFlagsAndVariables) {
  const Finished weir = replay({trace_, "--json", "-", "--pool", "round,naive", "--budget", "50%",
                                "--capacity", "16MiB", "--lag", "5", "--no-search"},
                               {{"WEIR_POOL_LINEAR_CUTOFF", "22"},
                                {"WEIR_BUDGET", "1%"},
                                {"WEIR_ALLOC_LOG", directory_.file("log")}});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  const Json json = Json::parse(weir.out);
  EXPECT_EQ(json.at("capacity_bytes"), 16 << 20);
  EXPECT_EQ(json.at("lag"), 5);
  const Json& pools = json.at("traces").at(0).at("pools");
  EXPECT_EQ(pools.at(0).at("pool"), "round:22");
  EXPECT_EQ(pools.at(1).at("pool"), "naive");
  EXPECT_FALSE(pools.at(0).contains("least_capacity"));
  EXPECT_EQ(directory_.entries(), 1U) << "a replay is no run to be logged";
}

TEST_F(WeirReplay, RealMemoryCanBeUnderIt) {
  const Finished weir = replay({trace_, "--upstream", "host", "--capacity", "64MiB"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_THAT(weir.out, StartsWith("upstream host of 64 MiB"));
}

TEST_F(WeirReplay, DrawsAPictureOfEachTrace) {
  const std::string picture = directory_.file("picture.svg");
  const Finished weir =
      replay({trace_, "--svg", picture, "--map", "naive", "--pool", "naive,round"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_EQ(xml_fault(read_file(picture)), "");
  EXPECT_THAT(read_file(picture), AllOf(HasSubstr("<title>trace.csv: 6 operations"),
                                        HasSubstr(">naive: what lay where<")));
  EXPECT_EQ(replay({trace_, trace_, "--svg", directory_.file("%t.svg")}).exit_code, 0);
  EXPECT_EQ(xml_fault(read_file(directory_.file("1.svg"))), "");
  EXPECT_EQ(read_file(directory_.file("1.svg")), read_file(directory_.file("2.svg")));
}

TEST_F(WeirReplay, BreaksDownWhatWasReservedWhereItIsAskedTo) {
  const Words words{"--pool", "paged,unpooled", "--no-search", "--breakdown"};
  const auto breakdown_of = [&](Words more) {
    more.insert(more.end(), words.begin(), words.end());
    const Finished weir = replay(more);
    EXPECT_EQ(weir.exit_code, 0) << weir.err;
    return weir.out;
  };
  // 3 MiB are live on two pages after the second operation.
  const std::string caption = "\n\nwhere the reserved memory was at its peak, in MiB";
  const std::string table =
      caption +
      ", on pages of 2 MiB\n\n"
      "trace +pool +reserved +requested +rounding +page ends +holes +whole pages\n"
      "trace +paged +4 +3 +0 +1 +0 +0\n"
      "trace +unpooled +3 +3 +0 +0 +0 +0\n"
      "  trace: its file; pool: [^.]*\\.\n";
  EXPECT_THAT(
      breakdown_of({trace_, "--wide"}),
      ::testing::ContainsRegex(
          caption +
          " / in pages of 2 MiB\n\n"
          "trace +pool +operation +reserved +requested +rounding +page ends +holes +whole pages\n"
          "trace +paged +2 +4 / 2.0 +3 / 1.5 +0 / 0.0 +1 / 0.5 +0 / 0.0 +0 / 0.0\n"
          "trace +unpooled +2 +3 / 1.5 +3 / 1.5 +0 / 0.0 +0 / 0.0 +0 / 0.0 +0 / 0.0\n"));
  EXPECT_THAT(breakdown_of({trace_}), ::testing::ContainsRegex(table + "$"));
  EXPECT_THAT(breakdown_of({trace_, "--summary", "--recommend"}),
              ::testing::ContainsRegex(table + "\nrecommended: "));
  const Json pools =
      Json::parse(breakdown_of({trace_, "--json", "-"})).at("traces").at(0).at("pools");
  EXPECT_EQ(pools.at(0).at("breakdown"), Json({{"operation", 2},
                                               {"page_bytes", 2 << 20},
                                               {"reserved_bytes", 4 << 20},
                                               {"requested_bytes", 3 << 20},
                                               {"rounding_bytes", 0},
                                               {"page_ends_bytes", 1 << 20},
                                               {"holes_bytes", 0},
                                               {"whole_pages_bytes", 0}}));
  const Finished plain = replay({trace_, "--pool", "paged", "--no-search"});
  EXPECT_THAT(plain.out, ::testing::Not(HasSubstr("where the reserved memory was")));
  const Json json =
      Json::parse(replay({trace_, "--pool", "paged", "--no-search", "--json", "-"}).out);
  EXPECT_FALSE(json.at("traces").at(0).at("pools").at(0).contains("breakdown"));
}

TEST_F(WeirReplay, RecommendsVariablesToSet) {
  const Finished weir = replay({trace_, "--recommend"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_THAT(weir.out, ::testing::ContainsRegex("\nrecommended: WEIR_POOL=[a-z_]+.*\n  reserves"));
  EXPECT_THAT(weir.out, HasSubstr("\nsecond best: WEIR_POOL="));
  const Json json = Json::parse(replay({trace_, "--recommend", "--json", "-"}).out);
  EXPECT_THAT(json.at("recommendation").at("best").at("variables").get<std::string>(),
              StartsWith("WEIR_POOL="));
}

TEST_F(WeirReplay, AnOutputMayNotBeATrace) {
  const std::string before = read_file(trace_);
  const std::string hard = directory_.file("1.svg");
  std::filesystem::create_hard_link(trace_, hard);
  for (const std::string& output : {trace_, hard}) {
    expect_refused({trace_, "--svg", output}, "--svg='" + output + "'");
    expect_refused({trace_, "--json", output}, "--json='" + output + "'");
  }
  expect_refused({trace_, "--svg", directory_.file("%t.svg")}, "--svg='" + hard + "'");
  EXPECT_EQ(read_file(trace_), before);
}

TEST_F(WeirReplay, WritesFiguresBesideTheTable) {
  const std::string json = directory_.file("figures.json");
  const Finished weir = replay({trace_, "--summary", "--json", json});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_THAT(weir.out, HasSubstr("\npool "));
  EXPECT_EQ(Json::parse(read_file(json)).at("traces").size(), 1U);
}

TEST_F(WeirReplay, ReadsStandardInput) {
  const Finished weir =
      ChildProcess({"replay", "-", "--pool", "naive"}, {.stdin_path = trace_}).wait();
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_THAT(weir.out, HasSubstr("\nstandard input: 6 operations"));
}

TEST_F(WeirReplay, WhatHasNoEndIsRefusedBeforeItFillsTheMemory) {
  expect_refused({"/dev/zero"}, "/dev/zero: not a regular file");
  const Finished piped = ChildProcess({"replay", "-"}, {.stdin_path = "/dev/zero"}).wait();
  EXPECT_EQ(piped.exit_code, 2);
  EXPECT_THAT(piped.err,
              StartsWith("weir: standard input: not a trace: at byte 0 a line begins that "
                         "is longer than 1 MiB\n"));
  const std::string packed = directory_.file("zeros.gz");
  write_file(packed, gzip_of(std::string(8 << 20, '\0')));
  expect_refused({packed}, packed + ": not a trace: at byte 0 a line begins that is longer");
}

TEST_F(WeirReplay, ATraceThatIsCutShortIsReplayedAndSaysSo) {
  write_file(trace_, "buffer,start,end,size\n1,0,3,10\n2,4,");
  const Finished weir = replay({trace_, "--pool", "naive"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_THAT(weir.out,
              HasSubstr("\n  cut short: line 3 is incomplete: it does not end with a newline\n"));
  EXPECT_THAT(replay({trace_, "--summary", "--pool", "naive"}).out,
              HasSubstr("\n" + trace_ +
                        ":\n  cut short: line 3 is incomplete: it does not end with a newline\n"));
}

/// The first block of `language` on `page`, behind `from`.
std::string block_of(const std::string& page, const std::string& language,
                     const std::string& from) {
  const std::string fence = "```" + language + "\n";
  const std::size_t begin = page.find(fence, page.find(from) + from.size()) + fence.size();
  return page.substr(begin, page.find("```\n", begin) - begin);
}

/// The cells of each line, without the times, which differ in each run.
std::vector<std::vector<std::string>> cells_of(const std::string& table) {
  std::vector<std::vector<std::string>> rows;
  std::size_t time = std::string::npos;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) < line.size();) {
      const std::size_t end = std::min(line.find("  ", at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = end;
    }
    const auto heading = std::ranges::find(cells, "ns/op");
    if (heading != cells.end()) time = static_cast<std::size_t>(heading - cells.begin());
    if (time < cells.size()) cells[time] = "time";
  }
  return rows;
}

TEST_F(WeirReplay, ThePageShowsWhatIsPrinted) {
  const std::string page = read_file(WEIR_REPLAY_PAGE);
  const std::string trace = directory_.file("steps.csv");
  write_file(trace, block_of(page, "csv", "## One trace"));
  const Finished weir = replay({trace, "--pool", "unpooled,naive,round:24"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  std::string shown =
      block_of(page, "text", "weir replay steps.csv --pool unpooled,naive,round:24\n```\n");
  shown.replace(shown.find("steps.csv"), 9, trace);
  EXPECT_EQ(cells_of(shown), cells_of(weir.out));
  EXPECT_GT(cells_of(shown).size(), 6U);

  const Finished broken_down =
      replay({trace, "--pool", "naive,round:24,paged", "--no-search", "--breakdown"});
  const std::string table = block_of(page, "text", "--no-search --breakdown\n```\n");
  EXPECT_THAT(broken_down.out, ::testing::EndsWith("\n\n" + table));
  EXPECT_GE(cells_of(table).size(), 5U) << "with the legend";
}

}  // namespace
}  // namespace weir::testing
