// `weir-train wide` as its users meet it: data sets, figures, bad input, and a run that is ended in
// the middle and goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/parts/step_state.hpp"
#include "support/child_process.hpp"
#include "support/file_size_limit.hpp"
#include "support/table_checks.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

/// A small network on the cpu.
Words wide(const Words& more) {
  Words all{"wide",         "--device", "cpu",   "--budget", "64MiB",          "--scale", "0.002",
            "--batch-size", "8",        "--nnz", "10",       "--test-batches", "2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void expect_refused(const Words& arguments, const std::string& part) {
  expect_refused_in_one_line(run_weir_train(arguments), {part});
}

TEST(CliWide, PrintsItsNetworkItsPaceAndItsTables) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  const std::string timeline = directory.file("timeline.json");
  const Finished child = succeeded(run_weir_train(
      wide({"--batches", "20", "--pace", "10", "--json", json, "--timeline", timeline})));
  expect_parts(child.err, {"network 500 -> 2 -> 1 -> 400, 1,805 parameters"});
  expect_parts(child.err, {"\nbatch 10, time ", "\nbatch 20, time ", "increased memory "});
  expect_parts(child.out, {"copied to the device", "copies hidden", "host memory obtained",
                           "memory of", "time by task", "update rows", "sparse layer",
                           "copy to device", "precision@1, test"});
  const auto figures = nlohmann::json::parse(read_file(json));
  EXPECT_EQ(figures["result"]["batches"], 20);
  EXPECT_EQ(figures["result"]["parameters"], 1805);
  EXPECT_EQ(figures["result"]["pace"].size(), 2U);
  EXPECT_GT(figures["result"]["copied_to_device"]["bytes"], 0);
  EXPECT_EQ(figures["result"]["copied_to_host"]["bytes"], 16);
  EXPECT_GT(figures["tasks"].size(), 0U);
  const auto& hidden = figures["result"]["copies_hidden"];
  EXPECT_GT(hidden["copying_ns"], 0);
  EXPECT_LE(hidden["copying_ns"].get<double>(), 1e9 * figures["result"]["seconds"].get<double>());
  EXPECT_GE(hidden["share"], 0);
  EXPECT_LE(hidden["share"], 1);
  const auto& memory = figures["result"]["host_memory"];
  EXPECT_EQ(memory["pinned"], false);
  EXPECT_EQ(memory["warm_up_batches"], 6) << "twice what two readers have ahead";
  EXPECT_GT(memory["warm_up_bytes"], 0);
}

TEST(CliWide, WithoutATimelineKnowsNothingOfHiddenCopies) {
  const Finished child = succeeded(run_weir_train(wide({"--batches", "3", "--json", "-"})));
  EXPECT_TRUE(nlohmann::json::parse(child.out)["result"]["copies_hidden"].is_null());
}

TEST(CliWide, TablesFitTheTerminalAndAWideOneHasAllColumns) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("run.pftrace");
  const Finished child = succeeded(run_weir_train(wide({"--batches", "3", "--timeline", file})));
  EXPECT_LE(widest_line(child.out), 100U) << child.out;
  expect_legend_of(child.out, "memory of");
  expect_legend_of(child.out, "time by task, device");
  const Finished all = run_weir_train(wide({"--batches", "3", "--timeline", file, "--wide"}));
  for (const char* heading : {"reserved", "awaiting", "cached"}) {
    EXPECT_THAT(headings_of(all.out, "memory of"),
                ::testing::Contains(::testing::StartsWith(heading)));
  }
  for (const char* heading : {"longest", "moved", "rate"}) {
    EXPECT_THAT(headings_of(all.out, "time by task, device"),
                ::testing::Contains(::testing::StartsWith(heading)));
  }
  expect_legend_of(all.out, "memory of");
}

TEST(CliWide, ShowsBothDevicesOfAPlacedFirstLayer) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  const Finished child =
      succeeded(run_weir_train(wide({"--batches", "5", "--first-layer", "cpu",
                                     "--first-layer-budget", "32MiB", "--json", json})));
  EXPECT_NE(child.err.find("first-layer=cpu (--first-layer)"), std::string::npos) << child.err;
  expect_parts(child.out, {"first layer  ", "batches copied to cpu", "copied from cpu to cpu",
                           "copied back to cpu"});
  EXPECT_THAT(child.out, ::testing::ContainsRegex("\nmemory of +peak MiB +budget MiB "));
  EXPECT_THAT(child.out, ::testing::ContainsRegex("\ncpu, first layer +[0-9.]+ +32.00 "));
  const auto placed = nlohmann::json::parse(read_file(json))["result"]["first_layer"];
  EXPECT_EQ(placed["device"], "cpu");
  EXPECT_EQ(placed["memory"]["budget_bytes"], 32 << 20);
  EXPECT_GT(placed["memory"]["allocated_bytes"], 0);
  // 5 batches of 8 rows with 2 hidden units, the biases' gradient and the step's state.
  EXPECT_EQ(placed["copied_back"]["bytes"], 5 * (8 * 2 + 2 + kStepStateWords) * 4);
  EXPECT_GT(placed["copied_to_rest"]["bytes"], 5 * 8 * 2 * 4);
  EXPECT_GT(placed["copied_to_rest"]["copy_seconds"], 0);
}

TEST(CliWide, MakesADataSetAndTrainsOnIt) {
  const TemporaryDirectory directory;
  const std::string data = directory.file("data");
  const Finished made = succeeded(run_weir_train(wide({"--make", data, "--rows", "40"})));
  const Finished child = succeeded(run_weir_train(
      {"wide", "--device", "cpu", "--budget", "64MiB", "--data", data, "--hidden", "4",
       "--batch-size", "8", "--epochs", "2", "--json", directory.file("figures.json")}));
  const auto figures = nlohmann::json::parse(read_file(directory.file("figures.json")));
  EXPECT_EQ(figures["result"]["batches"], 10) << "two epochs of five";
  EXPECT_EQ(figures["result"]["test_images"], 4);
}

TEST(CliWide, KeepsACheckpointThatNobodyAskedToGoOnFrom) {
  const TemporaryDirectory directory;
  const Words once = wide({"--batches", "2", "--checkpoint", directory.file("saved")});
  ASSERT_EQ(run_weir_train(once).exit_code, 0);
  expect_refused(once, "--resume goes on from it");
}

TEST(CliWide, SaysThatItsLastCheckpointIsMissing) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("saved");
  const Finished child = [&] {
    const FileSizeLimit limit(1000);
    return run_weir_train(wide({"--batches", "2", "--checkpoint", file}));
  }();
  EXPECT_EQ(child.exit_code, 1) << child.err;
  expect_parts(child.err, {"does not have batch 2: what was trained is lost"});
}

TEST(CliWide, SaysThatNothingIsLeftToTrain) {
  const TemporaryDirectory directory;
  const Words saving = wide({"--checkpoint", directory.file("saved"), "--batches"});
  Words first = saving;
  first.emplace_back("5");
  ASSERT_EQ(run_weir_train(first).exit_code, 0);
  Words again = saving;
  again.insert(again.end(), {"3", "--resume"});
  const Finished child = succeeded(run_weir_train(again));
  expect_parts(child.err, {"has batch 5 already, and 3 are all: nothing was trained"});
}

TEST(CliWide, RefusesACheckpointThatIsNoFile) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(wide({"--checkpoint", pipe}), "a regular file");
  expect_refused(wide({"--checkpoint", pipe, "--resume"}), "a regular file");
  expect_refused(wide({"--json", pipe}), "a pipe that is being read");
}

TEST(CliWide, MakingEndsWithASignalAndLeavesNoPart) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const TemporaryDirectory directory;
    ChildProcess child(wide({"--make", directory.file("data"), "--rows", "1000000000"}));
    while (!std::filesystem::exists(directory.file("data/train.libsvm.partial"))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    child.send(signal);
    EXPECT_EQ(child.wait().exit_code, 130);
    EXPECT_TRUE(std::filesystem::is_empty(directory.file("data")));
  }
}

/// A run that ends in the middle and goes on.
class CliWideCheckpoints : public ::testing::Test {
 protected:
  [[nodiscard]] Words training() const {
    Words words = wide({"--batches", "60", "--optimizer", "adamax", "--every", "3", "--checkpoint",
                        file_, "--pace", "1"});
    if (std::filesystem::exists(file_)) words.emplace_back("--resume");
    return words;
  }
  /// Trains to the end and returns the last checkpoint.
  [[nodiscard]] std::string finish() const {
    const Finished end = succeeded(run_weir_train(training()));
    return read_file(file_);
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.file("saved");
};

TEST_F(CliWideCheckpoints, GoOnAfterSigtermWithTheSameBits) {
  const std::string expected = finish();
  std::filesystem::remove(file_);
  ChildProcess child(training());
  child.await_error_text("\nbatch 5,");
  child.send(SIGTERM);
  EXPECT_NE(child.wait().exit_code, -1) << "it ends by itself";
  EXPECT_TRUE(std::filesystem::exists(file_));
  EXPECT_TRUE(finish() == expected);
}

TEST_F(CliWideCheckpoints, AreOfOneRunAtATime) {
  const std::string expected = finish();
  std::filesystem::remove(file_);
  Words slow = training();
  slow.insert(slow.end(), {"--read-time", "100ms"});
  ChildProcess first(slow);
  first.await_error_text("\nbatch 1,");
  expect_refused(training(), file_ + "' is not allowed: a file that no other run uses: process ");
  first.await_error_text("\nbatch 5,");
  expect_refused(training(), "no other run uses");
  first.send(SIGKILL);
  EXPECT_EQ(first.wait().signal, SIGKILL);
  EXPECT_TRUE(finish() == expected) << "nothing is left that holds the file";
  EXPECT_EQ(directory_.entries(), 1U);
}

}  // namespace
}  // namespace weir::testing
