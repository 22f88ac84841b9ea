// weir-train as users run it: exit codes, output streams, settings and figures.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "allocator/base/bytes.hpp"
#include "support/child_process.hpp"
#include "support/joined_lines.hpp"
#include "support/table_checks.hpp"
#include "tools/program/table.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/jobs.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

/// A run that ends at once.
const std::vector<std::string> kShortRun{"run", "--batches", "3", "--batch-size", "16"};

std::vector<std::string> short_run_with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kShortRun;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The cell beside `name` in the table of `run`; empty if there is no such line.
std::string printed(const std::string& table, const std::string& name) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + "  ")) return line.substr(line.find_first_not_of(' ', name.size()));
  }
  return {};
}

/// The settings that a command printed first, in one line.
std::string settings_of(const Finished& child) {
  const std::string err = joined_lines(child.err, 2);
  return err.substr(0, err.find('\n'));
}

void expect_settings(const Finished& child, const std::string& part) {
  EXPECT_EQ(child.exit_code, 0) << child.err;
  const std::string line = settings_of(child);
  EXPECT_TRUE(line.starts_with("settings: ")) << child.err;
  EXPECT_NE(line.find(part), std::string::npos) << line;
}

TEST(Cli, TableGoesToStandardOutputAndTheSettingsToStandardError) {
  const Finished child = succeeded(run_weir_train(kShortRun));
  EXPECT_EQ(printed(child.out, "result"), "finished");
  EXPECT_EQ(printed(child.out, "batches"), "3");
  EXPECT_TRUE(child.err.starts_with("settings: ")) << child.err;
  EXPECT_EQ(settings_of(child) + "\n", joined_lines(child.err, 2))
      << "no progress bar into a pipe: " << child.err;
  EXPECT_LE(widest_line(child.err), 100U) << child.err;
}

TEST(Cli, FlagBeatsOurVariableBeatsMxnetsBeatsTheDefault) {
  expect_settings(run_weir_train(kShortRun), "linear-cutoff=24 (default)");
  Variables variables{{"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "26"}};
  expect_settings(run_weir_train(kShortRun, variables),
                  "linear-cutoff=26 (MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF)");
  variables["WEIR_POOL_LINEAR_CUTOFF"] = "27";
  expect_settings(run_weir_train(kShortRun, variables),
                  "linear-cutoff=27 (WEIR_POOL_LINEAR_CUTOFF)");
  expect_settings(run_weir_train(short_run_with({"--pool-linear-cutoff", "28"}), variables),
                  "linear-cutoff=28 (--pool-linear-cutoff)");
}

TEST(Cli, EachFlagIsNamedAsTheSourceOfItsSetting) {
  const Finished flags = run_weir_train(short_run_with(
      {"--policy", "barrier", "--budget", "256MiB", "--pool", "naive", "--run-ahead", "3", "--lr",
       "0.01", "--momentum", "0.5", "--seed", "7", "--device", "cpu", "--device-memory", "1GiB"}));
  for (const char* part : {"policy=barrier (--policy)", "budget=256MiB (--budget)",
                           "pool=naive (--pool)", "run-ahead=3 (--run-ahead, not used by barrier)",
                           "lr=0.01 (--lr)", "momentum=0.5 (--momentum)", "seed=7 (--seed)",
                           "device=cpu (--device)", "device-memory=1GiB (--device-memory)",
                           "batches=3 (--batches)", "batch-size=16 (--batch-size)"}) {
    expect_settings(flags, part);
  }
}

TEST(Cli, WithoutAGpuTheCpuIsTakenAndTheLineSaysWhy) {
  for (const auto& arguments : {kShortRun, short_run_with({"--device", "auto"})}) {
    const Finished child = run_weir_train(arguments);
    const bool given = arguments.size() > kShortRun.size();
    expect_settings(child, given ? "device=cpu (--device: no GPU answers: "
                                 : "device=cpu (default: no GPU answers: ");
    EXPECT_EQ(child.err.find(": )"), std::string::npos) << child.err;
  }
  expect_settings(run_weir_train(short_run_with({"--device", "cpu"})), "device=cpu (--device), ");
}

TEST(Cli, GeneratedBatchesComeFromWhereTheFlagsSay) {
  const TemporaryDirectory directory;
  const auto weights_of = [&](const std::vector<std::string>& more, const std::string& settings) {
    std::vector<std::string> arguments = short_run_with({"--save", directory.file("weights")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_settings(run_weir_train(arguments), settings);
    return read_file(directory.file("weights"));
  };
  const std::string host = weights_of({}, "inputs=host (default), width-factor=1 (default)");
  EXPECT_TRUE(weights_of({"--inputs", "drawn"}, "inputs=drawn (--inputs), ") == host);
  EXPECT_TRUE(weights_of({"--inputs", "ring"}, "inputs=ring (--inputs), ring=8 (default), ") ==
              host);
  EXPECT_FALSE(weights_of({"--inputs", "ring", "--ring", "2"}, "ring=2 (--ring)") == host)
      << "the third batch is the first again";
  EXPECT_GT(weights_of({"--width-factor", "2"}, "width-factor=2 (--width-factor)").size(),
            2 * host.size());
}

TEST(Cli, JsonHasTheFiguresThatArePrinted) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  const Finished child = succeeded(run_weir_train(short_run_with({"--json", json})));
  const auto whole = nlohmann::json::parse(read_file(json));
  EXPECT_EQ(whole["settings"]["batches"]["source"], "--batches");
  EXPECT_EQ(printed(child.out, "policy"), whole["policy"]);
  const auto& r = whole["result"];
  EXPECT_EQ(printed(child.out, "batches/s"), format_number(r["batches_per_second"], 2));
  EXPECT_EQ(printed(child.out, "peak reserved"), format_bytes({r["peak_reserved_bytes"]}));
  EXPECT_EQ(printed(child.out, "mean loss"), format_number(r["mean_loss"], 6));
}

/// Room for a batch of the d2l model, and for the inputs of five more.
constexpr const char* kTight = "48MiB";

TEST(Cli, UnboundedInATightBudgetRunsOutWithExit3AndTheReport) {
  const Finished child =
      run_weir_train({"run", "--policy", "unbounded", "--budget", kTight, "--batches", "100"});
  EXPECT_EQ(child.exit_code, 3) << child.err;
  EXPECT_TRUE(printed(child.out, "result").starts_with("out of memory in batch ")) << child.out;
  expect_parts(child.err, {"48 MiB", "allocated", "awaiting", "cached", "inputs"});
  expect_parts(child.err, {"\n  what helps: --policy throttled: ",
                           "\n  more: docs/out-of-memory.md in the source tree\n"});
}

TEST(Cli, CompareSmallPrintsTheTableAndWritesTheSameFigures) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  const Finished child = succeeded(
      run_weir_train({"compare", "--small", "--rounds", "1", "--batches", "100", "--json", json}));
  expect_parts(child.out,
               {"MLP 512 -> 256 -> 128 -> 1, batches of 32", "\nreference", "\nunbounded",
                "\nbackstop", "\nthrottled", "\nbarrier", "smallest budget"});
  const auto whole = nlohmann::json::parse(read_file(json));
  EXPECT_EQ(whole["weights_identical"], true);
  for (const auto& policy : whole["policies"]) {
    EXPECT_NE(child.out.find(format_bytes({policy["smallest_budget_bytes"]})), std::string::npos);
  }
}

Finished run_within(Bytes address_space) {
  rlimit before{};
  EXPECT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{address_space.count, before.rlim_max};
  EXPECT_EQ(setrlimit(RLIMIT_AS, &small), 0);  // the child inherits it
  ChildProcess child(kShortRun, {.environment = {{"OPENBLAS_NUM_THREADS", "2"}}});
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  return child.wait();
}

TEST(Cli, EndsWithOneLineWhereTheBlasOrAThreadCannotHaveItsMemory) {
  for (const Bytes limit : {mib(100), mib(150), mib(200), mib(250), mib(300)}) {
    SCOPED_TRACE(format_bytes(limit));
    const Finished child = run_within(limit);
    EXPECT_EQ(child.exit_code, 1);
    EXPECT_EQ(child.out, "");
    // A thread of the BLAS that already has its memory may leave no room for one of ours.
    EXPECT_TRUE(child.err.find("the BLAS needs") != std::string::npos ||
                child.err.find("no thread can be started") != std::string::npos)
        << child.err;
    EXPECT_NE(child.err.find("raise `ulimit -v`"), std::string::npos) << child.err;
  }
}

TEST(Cli, NeverHangsWhereverAddressSpaceRunsOut) {
  for (Bytes limit = mib(320); limit < mib(600); limit += mib(20)) {
    // We do not control where malloc, the BLAS or a thread's stack meets the limit, nor its
    // reaction. One that hangs never comes back from here, and meets the presets' limit of time.
    SCOPED_TRACE(format_bytes(limit));
    (void)run_within(limit);
  }
}

}  // namespace
}  // namespace weir::testing
