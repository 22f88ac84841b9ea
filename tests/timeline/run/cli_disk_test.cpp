// A timeline that cannot be written does not affect the run: one line says why, and the result and
// the weights are the same bit for bit.

#include <gmock/gmock.h>

#include <filesystem>

#include "../../trainer/digits.hpp"
#include "runs.hpp"
#include "support/file_size_limit.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::StartsWith;
using weir::testing::DigitFiles;
using weir::testing::FileSizeLimit;
using weir::testing::read_file;
using weir::testing::run_weir_train;
using weir::testing::write_file;

const Words kShort{"--batches", "8", "--batch-size", "32", "--budget", "64MiB"};

using UnwritableTimeline = RecordedRuns;

TEST_F(UnwritableTimeline, AVariableThatNamesNoPlaceCostsALineAndNothingElse) {
  const Finished plain = run_weir_train(run_with({kShort, {"--save", file("plain")}}));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  write_file(file("mine.json"), "{\"mine\": true}\n");
  for (const char* const place : {"none/run.json", "mine.json"}) {
    const std::string name = file(place);
    SCOPED_TRACE(name);
    const Finished run =
        run_weir_train(run_with({kShort, {"--save", file("w")}}), {{"WEIR_TIMELINE", name}});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.err, StartsWith("weir: no timeline is recorded: WEIR_TIMELINE='" + name +
                                    "' is not allowed: "));
    EXPECT_EQ(run.err.find("weir: ", 1), std::string::npos) << "in one line\n" << run.err;
    EXPECT_EQ(read_file(file("w")), read_file(file("plain"))) << "the weights, bit for bit";
  }
  EXPECT_EQ(read_file(file("mine.json")), "{\"mine\": true}\n");
}

/// This model's weights fit on the disk, and the timeline of so many batches does not.
TEST_F(UnwritableTimeline, AFullDiskEndsTheRecordingAndChangesNothingElse) {
  const DigitFiles digits;
  const auto run = [&](const Words& more) {
    Words words{"run", "--device", "cpu", "--data", digits.directory(), "--epochs", "10"};
    words.insert(words.end(), more.begin(), more.end());
    return run_weir_train(words);
  };
  const Finished plain = run({"--json", file("plain.json"), "--save", file("plain")});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const auto room = std::filesystem::file_size(file("plain"));
  for (const char* const name : {"run.json", "run.pftrace", "run.json.gz"}) {
    SCOPED_TRACE(name);
    Finished full;
    {
      const FileSizeLimit limit(room);
      full = run({"--timeline", file(name), "--json", file("full.json"), "--save", file("full")});
    }
    EXPECT_EQ(full.exit_code, 0) << full.err;
    EXPECT_EQ(read_file(file("full")), read_file(file("plain"))) << "the weights, bit for bit";
    const auto said = figures("full.json");
    EXPECT_EQ(said["result"]["outcome"], "finished");
    EXPECT_EQ(said["result"]["mean_loss"], figures("plain.json")["result"]["mean_loss"]);
    if (said["timeline"]["lost"] == 0) continue;  // a dense format may fit
    const std::string line = "nothing more is recorded (File too large)\n";
    const auto said_at = full.err.find(line);
    EXPECT_NE(said_at, std::string::npos) << full.err;
    EXPECT_EQ(full.err.find("File too large", said_at + line.size()), std::string::npos)
        << "in one line\n"
        << full.err;
    EXPECT_THAT(said["timeline"]["note"].get<std::string>(),
                ::testing::HasSubstr("File too large"));
    std::string written = said["timeline"]["file"];
    EXPECT_FALSE(read_timeline(written).processes.at(0).complete);
  }
  EXPECT_GT(figures("full.json")["timeline"]["lost"], 0) << "the plain file of run.json.gz";
}

}  // namespace
}  // namespace weir::timeline::testing
