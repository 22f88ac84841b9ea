// weir timeline on the files of real runs: every readable format gives the same results.

#include <gmock/gmock.h>

#include <filesystem>

#include "runs.hpp"

namespace weir::timeline::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using weir::testing::read_file;
using weir::testing::run_weir_train;

class RealTimelines : public RecordedRuns {
 protected:
  void record(std::string_view name) const {
    const Finished run = run_weir_train(
        run_with({{"--batches", "6", "--batch-size", "8", "--timeline", file(name)}}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  void convert(std::string_view from, std::string_view to) const {
    const Finished done = weir({"timeline", "convert", file(from), "-o", file(to)});
    EXPECT_EQ(done.exit_code, 0) << done.err;
  }
};

TEST_F(RealTimelines, EachFormatReadsBackToTheSameFigures) {
  for (const char* const recorded : {"run.json", "run.pftrace", "run.json.gz"}) {
    SCOPED_TRACE(recorded);
    record(recorded);
    const json said = report(recorded);
    EXPECT_TRUE(said["summary"]["complete"]);
    EXPECT_EQ(said["summary"]["batches"], 6);
    for (const char* const other : {"as.json", "as.json.gz", "as.pftrace"}) {
      SCOPED_TRACE(other);
      convert(recorded, other);
      EXPECT_EQ(report(other), said);
    }
  }
}

TEST_F(RealTimelines, ASnapshotAndAPageAreMade) {
  record("run.json");
  convert("run.json", "run.pickle");
  EXPECT_THAT(read_file(file("run.pickle")), StartsWith("\x80"));
  const Finished page = weir({"timeline", "report", file("run.json"), "-o", file("run.html")});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(read_file(file("run.html")), HasSubstr("</html>"));
}

TEST_F(RealTimelines, TwoRunsAreMergedOnOneClock) {
  record("one.json");
  record("two.pftrace");
  for (const char* const merged : {"both.json", "both.pftrace"}) {
    SCOPED_TRACE(merged);
    const Finished done =
        weir({"timeline", "merge", file("one.json"), file("two.pftrace"), "-o", file(merged)});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Timeline both = read_timeline(file(merged));
    const Timeline one = read_timeline(file("one.json"));
    ASSERT_EQ(both.processes.size(), 2U);
    const Process& first = both.processes[0];
    const Process& second = both.processes[1];
    EXPECT_EQ(first.info.pid, one.processes[0].info.pid);
    EXPECT_EQ(first.records.size(), one.processes[0].records.size());
    ASSERT_FALSE(second.records.empty());
    EXPECT_GT(second.records.front().begin, first.records.back().begin) << "they ran in turn";
  }
}

}  // namespace
}  // namespace weir::timeline::testing
