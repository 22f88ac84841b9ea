// weir-train as users run it: exit codes, output streams, settings and figures.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "allocator/base/bytes.hpp"
#include "support/joined_lines.hpp"
#include "support/sanitized.hpp"
#include "support/table_checks.hpp"
#include "tools/program/table.hpp"
#include "trainer/child_process.hpp"
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

nlohmann::json figures_of(const std::vector<std::string>& arguments, int exit_code,
                          Variables environment = {}) {
  const TemporaryDirectory directory;
  std::vector<std::string> words = arguments;
  words.insert(words.end(), {"--json", directory.file("figures.json")});
  const Finished child = run_weir_train(words, std::move(environment));
  EXPECT_EQ(child.exit_code, exit_code) << child.err;
  return nlohmann::json::parse(read_file(directory.file("figures.json")))["result"];
}

TEST(Cli, HelpAndVersionSucceedOnStandardOutput) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--version"},
                                             {"run", "--help"},
                                             {"compare", "--help"},
                                             {"predict", "--help"},
                                             {"dispatch", "--help"}}) {
    const Finished child = run_weir_train(arguments);
    EXPECT_EQ(child.exit_code, 0);
    EXPECT_NE(child.out, "");
    EXPECT_EQ(child.err, "");
  }
  EXPECT_TRUE(run_weir_train({"--version"}).out.starts_with("weir-train "));
}

TEST(Cli, TableGoesToStandardOutputAndTheSettingsToStandardError) {
  const Finished child = run_weir_train(kShortRun);
  EXPECT_EQ(child.exit_code, 0);
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

TEST(Cli, EachFlagAndVariableIsNamedAsTheSourceOfItsSetting) {
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
  const Finished variables = run_weir_train(kShortRun, {{"WEIR_POLICY", "backstop"},
                                                        {"WEIR_BUDGET", "50%"},
                                                        {"WEIR_POOL", "unpooled"},
                                                        {"WEIR_RUN_AHEAD", "20ms"}});
  for (const char* part : {"policy=backstop (WEIR_POLICY)", "budget=50% (WEIR_BUDGET)",
                           "pool=unpooled (WEIR_POOL)", "(WEIR_RUN_AHEAD, not used by backstop)"}) {
    expect_settings(variables, part);
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

TEST(Cli, MxnetsVariablesSetVerbatimShowAndTakeEffect) {
  const Variables mxnet{{"MXNET_GPU_MEM_POOL_TYPE", "Round"},
                        {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "28"}};
  const Finished child = run_weir_train(kShortRun, mxnet);
  expect_settings(child, "pool=round (MXNET_GPU_MEM_POOL_TYPE)");
  expect_settings(child, "linear-cutoff=28 (MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF)");
  // Activations of 40 MiB then take 64; below the default's cutoff they would take 48.
  const std::vector<std::string> wide{"run", "--batches", "1", "--batch-size", "5120"};
  const auto with = figures_of(wide, 0, mxnet)["peak_reserved_bytes"].get<std::uint64_t>();
  const auto without = figures_of(wide, 0)["peak_reserved_bytes"].get<std::uint64_t>();
  EXPECT_GT(with, without);
}

TEST(Cli, JsonHasTheFiguresThatArePrinted) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  const Finished child = run_weir_train(short_run_with({"--json", json}));
  EXPECT_EQ(child.exit_code, 0) << child.err;
  const auto whole = nlohmann::json::parse(read_file(json));
  const auto& r = whole["result"];
  const std::string line = settings_of(child);
  for (const auto& [name, setting] : whole["settings"].items()) {
    const std::string part = name + "=" + setting["value"].get<std::string>() + " (" +
                             setting["source"].get<std::string>();
    EXPECT_NE(line.find(part), std::string::npos) << part << " is missing from " << line;
  }
  EXPECT_GE(whole["settings"].size(), 10U);
  EXPECT_EQ(printed(child.out, "policy"), whole["policy"]);
  EXPECT_EQ(printed(child.out, "result"), r["outcome"]);
  EXPECT_EQ(printed(child.out, "batches"), std::to_string(r["batches"].get<int>()));
  EXPECT_EQ(printed(child.out, "batches/s"), format_number(r["batches_per_second"], 2));
  EXPECT_EQ(printed(child.out, "device idle"),
            format_number(100 * r["idle_share"].get<double>(), 1) + "%");
  EXPECT_EQ(printed(child.out, "peak reserved"), format_bytes({r["peak_reserved_bytes"]}));
  EXPECT_EQ(printed(child.out, "peak held"), format_bytes({r["peak_held_bytes"]}));
  EXPECT_EQ(printed(child.out, "host staging"), format_bytes({r["staging_bytes"]}));
  EXPECT_EQ(printed(child.out, "most in flight"),
            format_count(r["most_in_flight"].get<std::uint64_t>(), "batch", "es"));
  EXPECT_EQ(printed(child.out, "dispatch stalls"),
            std::to_string(r["stalls"]["count"].get<int>()) + ", " +
                format_number(r["stalls"]["seconds"], 2) + " s in all");
  const std::string by_cause = printed(child.out, "stalls by cause");
  for (const auto& [cause, key] :
       {std::pair{"budget ", "stalls_budget"}, std::pair{"run-ahead ", "stalls_run_ahead"},
        std::pair{"barrier ", "stalls_barrier"}, std::pair{"pool ", "stalls_pool"}}) {
    const std::string figures = cause + std::to_string(r[key]["count"].get<int>()) + ", " +
                                format_number(r[key]["seconds"], 2) + " s";
    EXPECT_EQ(by_cause.find(figures) != std::string::npos, r[key]["count"] != 0) << by_cause;
  }
  const auto& idle = r["throttle_caused_idle"];
  EXPECT_EQ(printed(child.out, "throttle-caused idle"),
            format_number(1000 * idle["seconds"].get<double>(), 2) + " ms, " +
                format_number(100 * idle["share"].get<double>(), 1) + "% of the run");
  EXPECT_TRUE(
      printed(child.out, "run-ahead target")
          .starts_with(format_number(1000 * r["run_ahead_target"]["seconds"].get<double>(), 2) +
                       " ms = lead "))
      << child.out;
  EXPECT_EQ(printed(child.out, "forced admissions"),
            std::to_string(r["admitted_by_force"].get<int>()));
  EXPECT_EQ(printed(child.out, "mean loss"), format_number(r["mean_loss"], 6));
}

/// Room for a batch of the d2l model, and for the inputs of five more.
constexpr const char* kTight = "48MiB";

TEST(Cli, UnboundedInATightBudgetRunsOutWithExit3AndTheReport) {
  const Finished child =
      run_weir_train({"run", "--policy", "unbounded", "--budget", kTight, "--batches", "100"});
  EXPECT_EQ(child.exit_code, 3) << child.err;
  EXPECT_TRUE(printed(child.out, "result").starts_with("out of memory in batch ")) << child.out;
  for (const char* part : {"48 MiB", "allocated", "awaiting", "cached", "inputs"}) {
    EXPECT_NE(child.err.find(part), std::string::npos) << part << " is missing:\n" << child.err;
  }
  EXPECT_NE(child.err.find("\n  what helps: --policy throttled: "), std::string::npos) << child.err;
  EXPECT_NE(child.err.find("\n  more: docs/out-of-memory.md in the source tree\n"),
            std::string::npos)
      << child.err;
}

TEST(Cli, BackstopAndBarrierFinishInATightBudget) {
  const char* const batches = WEIR_TEST_SANITIZED != 0 ? "12" : "30";
  for (const char* policy : {"backstop", "barrier"}) {
    const auto r =
        figures_of({"run", "--policy", policy, "--budget", kTight, "--batches", batches}, 0);
    EXPECT_EQ(r["outcome"], "finished");
    EXPECT_LE(r["peak_reserved_bytes"].get<std::uint64_t>(), mib(48).count);
    EXPECT_GT(r["stalls"]["count"], 0) << "there was room for all";
  }
}

TEST(Cli, ABatchThatCannotFitAtAllFailsWithExit3AndTheReport) {
  for (const char* policy : {"unbounded", "backstop", "throttled", "barrier"}) {
    for (const char* budget : {"4KiB", "1MiB", "17MiB", "24MiB"}) {
      SCOPED_TRACE(std::string(policy) + " at " + budget);
      const auto r = figures_of({"run", "--policy", policy, "--budget", budget}, 3);
      EXPECT_EQ(r["outcome"], "out of memory in batch 1");
      const auto report = r["report"].get<std::string>();
      EXPECT_NE(report.find("\n  what helps: a larger --budget, or a smaller --batch-size: "),
                std::string::npos)
          << report;
    }
  }
  figures_of({"run", "--batch-size", "1000000000"}, 3);
}

TEST(Cli, CompareTakesAWiderModelAndDrawnInputs) {
  const std::string batches = WEIR_TEST_SANITIZED != 0 ? "6" : "20";
  const Finished child =
      run_weir_train({"compare", "--small", "--rounds", "1", "--batches", batches, "--width-factor",
                      "2", "--inputs", "drawn", "--device", "cpu"});
  EXPECT_EQ(child.exit_code, 0) << child.err;
  EXPECT_TRUE(
      child.out.starts_with("MLP 512 -> 512 -> 256 -> 1, batches of 32 drawn on the device, " +
                            batches + " batches a run, budget 5.84 MiB, "))
      << child.out;
  EXPECT_NE(child.out.find("bit-identical in all"), std::string::npos) << child.out;
}

TEST(Cli, CompareSmallPrintsTheTableAndWritesTheSameFigures) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  const Finished child = run_weir_train({"compare", "--small", "--rounds", "1", "--batches",
                                         WEIR_TEST_SANITIZED != 0 ? "20" : "100", "--json", json});
  EXPECT_EQ(child.exit_code, 0) << child.err;
  for (const char* part :
       {"MLP 512 -> 256 -> 128 -> 1, batches of 32", "\nreference", "\nunbounded", "\nbackstop",
        "\nthrottled", "\nbarrier", "smallest budget"}) {
    EXPECT_NE(child.out.find(part), std::string::npos) << child.out;
  }
  const auto whole = nlohmann::json::parse(read_file(json));
  EXPECT_EQ(whole["weights_identical"], true);
  for (const auto& policy : whole["policies"]) {
    EXPECT_NE(child.out.find(format_bytes({policy["smallest_budget_bytes"]})), std::string::npos);
  }
}

#if WEIR_TEST_SANITIZED == 0  // a sanitizer needs more address space than any limit leaves
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
    // reaction. A child that hangs is killed, and fails the test.
    EXPECT_NE(run_within(limit).signal, SIGKILL) << format_bytes(limit);
  }
}
#endif

}  // namespace
}  // namespace weir::testing
