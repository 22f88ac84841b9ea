// Bad input gives one clear line and exit 2 before any computation, and nothing is lost.

#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/child_process.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

struct BadInput {
  std::vector<std::string> arguments;
  std::string named;  ///< what the line must name
  Variables environment{};
};

std::string command_line(const BadInput& input) {
  std::string line;
  for (const auto& [name, value] : input.environment) {
    line.append(name).append("='").append(value).append("' ");
  }
  line += "weir-train";
  for (const std::string& word : input.arguments) line.append(" '").append(word).append("'");
  return line;
}

void expect_refused_in_one_line(const BadInput& input) {
  SCOPED_TRACE(command_line(input));
  const Finished child = run_weir_train(input.arguments, input.environment);
  EXPECT_EQ(child.exit_code, 2);
  EXPECT_EQ(child.out, "");
  EXPECT_EQ(std::ranges::count(child.err, '\n'), 1) << child.err;
  EXPECT_TRUE(child.err.starts_with("weir-train: ") && child.err.ends_with('\n')) << child.err;
  EXPECT_NE(child.err.find(input.named), std::string::npos) << child.err;
}

/// With `run` before it and `--json FILE` after it: the existing file stays unchanged.
void expect_run_refused(BadInput input) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  write_file(json, "figures of yesterday");
  input.arguments.insert(input.arguments.begin(), "run");
  input.arguments.insert(input.arguments.end(), {"--json", json});
  expect_refused_in_one_line(input);
  EXPECT_EQ(read_file(json), "figures of yesterday");
  EXPECT_EQ(directory.entries(), 1U);
}

/// Flag and value, both of which the line names.
void expect_value_refused(const std::string& flag, const std::string& value) {
  expect_run_refused({{flag, value}, flag + "='" + value + "'"});
}
void expect_variable_refused(const std::string& variable, const std::string& value) {
  expect_run_refused({{}, variable + "='" + value + "'", {{variable, value}}});
}

TEST(CliBadInput, SubcommandsAndFlags) {
  expect_refused_in_one_line({{}, "subcommand"});
  expect_refused_in_one_line({{"tran"}, "tran"});
  expect_refused_in_one_line({{"--frobnicate"}, "--frobnicate"});
  expect_refused_in_one_line({{"run", "compare"}, "compare"});
  expect_refused_in_one_line({{"compare", "--policy", "barrier"}, "--policy"});
  expect_refused_in_one_line({{"compare", "--rounds", "0"}, "--rounds"});
  expect_refused_in_one_line({{"compare", "--budget", "lots"}, "--budget"});
  expect_run_refused({{"--frobnicate"}, "--frobnicate"});
  expect_run_refused({{"--batches", "3", "--batches", "4"}, "--batches"});
}

TEST(CliBadInput, AFlagWithoutItsValue) { expect_refused_in_one_line({{"run", "--lr"}, "--lr"}); }

TEST(CliBadInput, EmptyValues) {
  for (const char* flag : {"--pool", "--policy", "--lr", "--data", "--save", "--device"}) {
    expect_value_refused(flag, "");
  }
  expect_refused_in_one_line({{"run", "--save-anyway"}, "--save-anyway needs --save"});
}

TEST(CliBadInput, Names) {
  expect_value_refused("--policy", "fast");
  expect_value_refused("--pool", "swimming");
  expect_value_refused("--device", "tpu");
  expect_value_refused("--device", "cuda:x");
  expect_value_refused("--inputs", "cloud");
  expect_variable_refused("WEIR_POLICY", "fast");
  expect_variable_refused("WEIR_POOL", "swimming");
  expect_variable_refused("MXNET_GPU_MEM_POOL_TYPE", "swimming");
  expect_variable_refused("WEIR_LOG", "loud");
}

TEST(CliBadInput, DevicesThatAreNotThere) {
  // The tests' programs see no GPU, even if there is one.
  using Commands = std::vector<std::vector<std::string>>;
  const std::vector<std::string> predict{"predict", "--data", "data", "--weights", "weights"};
  for (const std::vector<std::string>& words : Commands{{"run"}, {"compare"}, predict}) {
    for (const char* device : {"cuda", "cuda:0", "cuda:7"}) {
      std::vector<std::string> whole = words;
      whole.insert(whole.end(), {"--device", device});
      expect_refused_in_one_line({whole, ", or use the device cpu"});
    }
  }
  expect_refused_in_one_line({{"dispatch", "--device", "cuda"}, "--device='cuda' is not allowed"});
}

TEST(CliBadInput, InputsThatAnotherFlagRulesOut) {
  const TemporaryDirectory directory;
  for (const char* inputs : {"ring", "drawn"}) {
    expect_run_refused({{"--inputs", inputs, "--data", directory.file("")}, "--inputs and --data"});
  }
  expect_run_refused({{"--ring", "3"}, "--ring needs --inputs ring"});
  expect_run_refused({{"--ring", "3", "--inputs", "drawn"}, "--ring needs --inputs ring"});
  expect_refused_in_one_line({{"compare", "--ring", "3"}, "--ring needs --inputs ring"});
}

TEST(CliBadInput, Budgets) {
  for (const char* budget : {"lots", "", "0MiB", "-1GiB", "0%", "101%", "96", "99999999999TiB"}) {
    expect_value_refused("--budget", budget);
  }
  expect_variable_refused("WEIR_BUDGET", "lots");
  expect_run_refused({{"--budget", "65MiB", "--device-memory", "64MiB"}, "65 MiB"});
  expect_run_refused({{"--budget", "1000TiB"}, "(--budget)"});
  expect_run_refused({{}, "(WEIR_BUDGET)", {{"WEIR_BUDGET", "1000TiB"}}});
  for (const char* memory : {"lots", "0MiB", "1000TiB"}) {
    expect_value_refused("--device-memory", memory);
  }
}

TEST(CliBadInput, PoolsSettings) {
  for (const char* cutoff : {"19", "35", "x"}) {
    expect_value_refused("--pool-linear-cutoff", cutoff);
    expect_variable_refused("WEIR_POOL_LINEAR_CUTOFF", cutoff);
    expect_variable_refused("MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", cutoff);
  }
  expect_value_refused("--pool-page-size", "16");
  expect_run_refused({{"--pool", "round", "--pool-page-size", "3000"}, "3000"});
  expect_run_refused(
      {{}, "MXNET_GPU_MEM_POOL_PAGE_SIZE", {{"MXNET_GPU_MEM_POOL_PAGE_SIZE", "3000"}}});
  expect_value_refused("--pool-large-round-size", "0");
}

TEST(CliBadInput, Numbers) {
  for (const char* count : {"0", "-5", "1.5", "x", "", "99999999999999999999"}) {
    expect_value_refused("--batches", count);
  }
  for (const char* count : {"0", "-1"}) {
    expect_value_refused("--batch-size", count);
    expect_value_refused("--ring", count);
    expect_value_refused("--width-factor", count);
  }
  for (const char* rate : {"0", "-1", "nan", "abc", "1e300"}) expect_value_refused("--lr", rate);
  expect_value_refused("--momentum", "1");
  expect_value_refused("--seed", "-1");
  for (const char* run_ahead : {"0", "5 parsecs"}) expect_value_refused("--run-ahead", run_ahead);
  expect_variable_refused("WEIR_RUN_AHEAD", "5 parsecs");
}

TEST(CliBadInput, OutputPathsThatCannotBeWritten) {
  const TemporaryDirectory directory;
  for (const std::string& path : {directory.file("missing/figures.json"), directory.file(""),
                                  std::string("/proc/version"), std::string()}) {
    expect_refused_in_one_line({{"run", "--json", path}, "--json='" + path + "'"});
    expect_refused_in_one_line({{"compare", "--json", path}, "--json='" + path + "'"});
  }
  EXPECT_EQ(directory.entries(), 0U);
}

}  // namespace
}  // namespace weir::testing
