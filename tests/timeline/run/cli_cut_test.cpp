// A run killed at any moment leaves a timeline that opens, and the report says that it was cut off.

#include <gmock/gmock.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>

#include "runs.hpp"
#include "support/random_seed.hpp"
#include "tools/timeline/analysis/counters.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::ChildProcess;

/// WEIR_TEST_KILLS: how many runs are killed; 10 by default. KilledRecorder kills 201.
int kills() {
  const char* const text = std::getenv("WEIR_TEST_KILLS");
  constexpr int kFew = 10;
  return text != nullptr ? std::atoi(text) : kFew;
}

using KilledRun = RecordedRuns;

TEST_F(KilledRun, LeavesATimelineThatOpensAndSaysThatItWasCut) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < kills(); ++i) {
    constexpr std::array kNames{"run.json", "run.pftrace", "run.json.gz"};
    const std::string path = file(kNames[static_cast<std::size_t>(i) % kNames.size()]);
    std::filesystem::remove(path);
    ChildProcess run(run_with({{"--batches", "100000", "--batch-size", "1", "--timeline", path}}));
    run.await_error_text("settings: ");
    const timespec moment{.tv_sec = 0, .tv_nsec = static_cast<long>(random() % 400'000'000)};
    nanosleep(&moment, nullptr);  // this moment is random
    run.send(SIGKILL);
    ASSERT_EQ(run.wait().signal, SIGKILL);

    const Timeline timeline = read_timeline(path);
    ASSERT_EQ(timeline.processes.size(), 1U) << "killed after " << moment.tv_nsec << " ns";
    const Process& process = timeline.processes[0];
    EXPECT_FALSE(process.complete);
    EXPECT_EQ(process.lost, 0U);
    EXPECT_EQ(check_accounting(Index(process)).differ, 0U);
    const Finished report = weir({"timeline", "report", path});
    EXPECT_EQ(report.exit_code, 0) << report.err;
    EXPECT_THAT(report.out.substr(0, report.out.find('\n')), HasSubstr("the recording was cut"));
  }
}

}  // namespace
}  // namespace weir::timeline::testing
