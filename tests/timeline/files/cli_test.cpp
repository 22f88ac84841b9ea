// `weir timeline` as users see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../trainer/temporary_directory.hpp"
#include "../chrome/files.hpp"
#include "support/child_process.hpp"
#include "support/file_size_limit.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::StartsWith;
using weir::testing::ChildProcess;
using weir::testing::Finished;
using weir::testing::read_file;
using weir::testing::write_file;
using Words = std::vector<std::string>;

class WeirTimeline : public ::testing::Test {
 protected:
  WeirTimeline() {
    write_file(one_, to_chrome(recording(1)));
    write_file(two_, to_chrome(recording(2)));
  }
  static Timeline recording(std::uint32_t pid) {
    Timeline timeline;
    Process& process = timeline.processes.emplace_back();
    process.info = {.pid = pid,
                    .rank = pid,
                    .program = "p",
                    .host = "h",
                    .boot = "b",
                    .monotonic_ns = pid * 1000,
                    .unix_ns = 5};
    process.complete = true;
    process.records = {{.begin = 7, .end = 9, .thread = 1, .kind = TimelineKind::kBarrier}};
    return timeline;
  }
  static Finished timeline(Words words) {
    words.insert(words.begin(), "timeline");
    return ChildProcess(words).wait();
  }
  static void expect_refused(const Words& words, const std::string& what) {
    SCOPED_TRACE(::testing::PrintToString(words));
    weir::testing::expect_refused_in_one_line(timeline(words), {what});
  }

  const weir::testing::TemporaryDirectory directory_;
  const std::string one_ = directory_.file("one.json");
  const std::string two_ = directory_.file("two.json");
};

TEST_F(WeirTimeline, MergesFilesIntoOne) {
  const std::string out = directory_.file("both.json");
  const Finished weir = timeline({"merge", two_, one_, "-o", out});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  const Timeline merged = read_timeline(out);
  ASSERT_EQ(merged.processes.size(), 2U);
  EXPECT_EQ(merged.processes[0].info.rank, 1U);
  EXPECT_EQ(merged.processes[0].records.at(0).begin, 7U);
  EXPECT_EQ(merged.processes[1].records.at(0).begin, 1007U);
}

TEST_F(WeirTimeline, ConvertsToGzipAndBackWithoutLoss) {
  const std::string packed = directory_.file("one.json.gz");
  const std::string back = directory_.file("back.json");
  EXPECT_EQ(timeline({"convert", one_, "-o", packed}).exit_code, 0);
  EXPECT_THAT(read_file(packed), StartsWith("\x1f\x8b"));
  EXPECT_EQ(timeline({"convert", packed, "--output", back}).exit_code, 0);
  EXPECT_EQ(read_file(back), read_file(one_));
}

TEST_F(WeirTimeline, NothingThatIsReadIsWritten) {
  const std::string before = read_file(one_);
  expect_refused({"convert", one_, "-o", one_},
                 "is not allowed: a different file from that of FILE");
  expect_refused({"merge", one_, two_, "-o", two_}, "a different file from that of FILE");
  expect_refused({"report", one_, "-o", one_}, "a different file from that of FILE");
  const std::string out = directory_.file("out.json");
  expect_refused({"report", one_, "-o", out, "--json", out}, "a different file from that of");
  EXPECT_EQ(read_file(one_), before);
}

TEST_F(WeirTimeline, AFailureLeavesTheOldFile) {
  const std::string out = directory_.file("old.json");
  write_file(out, "old");
  expect_refused({"merge", one_, one_, "-o", out}, "the same recording appears twice: p, rank 1");
  EXPECT_EQ(read_file(out), "old");
  expect_refused({"convert", one_, "-o", "/nowhere/x.json"}, "No such file or directory");
  EXPECT_EQ(timeline({"convert", one_, "-o", "/dev/full"}).exit_code, 2)
      << "no ending that is known";
}

TEST_F(WeirTimeline, AFileThatMayNotGrowIsRefusedAndLeavesNothing) {
  const weir::testing::FileSizeLimit limit(100);
  for (const char* const name : {"x.json", "x.json.gz", "x.pftrace"}) {
    expect_refused({"convert", one_, "-o", directory_.file(name)}, "File too large");
  }
  expect_refused({"report", one_, "-o", directory_.file("x.html")}, "File too large");
  EXPECT_EQ(directory_.entries(), 2U) << "what was read";
}

}  // namespace
}  // namespace weir::timeline::testing
