// Interrupting weir-train: it stops cleanly with the figures so far, and at once at the second
// interrupt.

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "support/child_process.hpp"
#include "tools/program/table.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

constexpr int kInterrupted = 130;
/// Runs until it is stopped.
const std::vector<std::string> kEndlessRun{"run", "--batches", "1000000000", "--batch-size", "16"};

TEST(CliInterrupt, EndsARunWithTheFiguresSoFar) {
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const char* policy : {"throttled", "barrier"}) {
      SCOPED_TRACE(std::string(policy) + ", signal " + std::to_string(signal));
      const TemporaryDirectory directory;
      const std::string json = directory.file("figures.json");
      std::vector<std::string> arguments = kEndlessRun;
      arguments.insert(arguments.end(), {"--policy", policy, "--json", json});
      ChildProcess child(arguments);
      child.await_error_text("settings: ");
      child.send(signal);
      const Finished end = child.wait();
      EXPECT_EQ(end.exit_code, kInterrupted) << "signal " << end.signal;
      EXPECT_NE(end.out.find("interrupted after "), std::string::npos) << end.out;
      const auto r = nlohmann::json::parse(read_file(json))["result"];
      EXPECT_EQ(r["outcome"], "interrupted after " +
                                  format_count(r["batches"].get<std::uint64_t>(), "batch", "es"));
      EXPECT_EQ(r["held_bytes_per_batch"].size(), r["batches"]);
      EXPECT_EQ(r.contains("mean_loss"), r["batches"] != 0);
      EXPECT_EQ(directory.entries(), 1U);
    }
  }
}

TEST(CliInterrupt, EndsACompareWithTheTableSoFar) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  ChildProcess child({"compare", "--small", "--batches", "1000000000", "--json", json});
  child.await_error_text("settings: ");
  child.send(SIGINT);
  const Finished end = child.wait();
  EXPECT_EQ(end.exit_code, kInterrupted) << "signal " << end.signal;
  expect_parts(end.out, {"\nreference", "\nthrottled", "interrupted: these are the figures"});
  EXPECT_EQ(nlohmann::json::parse(read_file(json))["interrupted"], true);
}

TEST(CliInterrupt, ASecondTimeEndsItAtOnce) {
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = kEndlessRun;
  arguments.insert(arguments.end(), {"--json", directory.file("figures.json")});
  // Its last step cannot end: the pipe for the table is full and nobody reads it.
  ChildProcess child(arguments, {.stdout_is_full = true});
  child.await_error_text("settings: ");
  child.send(SIGINT);
  child.await_error_text("interrupt again to stop at once");
  child.send(SIGINT);
  const Finished end = child.wait();
  EXPECT_EQ(end.signal, SIGINT) << "exit code " << end.exit_code;
  EXPECT_EQ(directory.entries(), 0U) << "no partial file stays";
}

}  // namespace
}  // namespace weir::testing
