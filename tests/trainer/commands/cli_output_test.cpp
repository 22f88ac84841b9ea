// The outputs of figures: one that cannot be written does not affect another.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/child_process.hpp"
#include "support/joined_lines.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

std::vector<std::string> short_run_to(const std::string& json) {
  return {"run", "--batches", "1", "--batch-size", "1", "--json", json};
}

TEST(CliOutput, APathThatIsNotUtf8LosesNoFigures) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("figures.json");
  const Finished child = succeeded(
      run_weir_train(short_run_to(json), {{"WEIR_ALLOC_LOG", directory.file("log\xff")}}));
  const auto log = nlohmann::json::parse(read_file(json))["settings"]["alloc-log"];
  EXPECT_EQ(log["value"], directory.file("log\xef\xbf\xbd"));
}

TEST(CliOutput, AnOldAllocationLogStaysUntilTrainingBegins) {
  const TemporaryDirectory directory;
  const Variables logged{{"WEIR_ALLOC_LOG", directory.file("log")}};
  ASSERT_EQ(run_weir_train({"run", "--batches", "1", "--batch-size", "1"}, logged).exit_code, 0);
  const std::string before = read_file(directory.file("log"));
  const std::string missing = directory.file("none");
  const std::vector<std::vector<std::string>> mistaken{
      {"run", "--data", missing},
      {"run", "--epochs", "3"},
      {"run", "--json", missing + "/figures"},
      {"compare", "--json", missing + "/figures"},
      {"predict", "--data", missing, "--weights", missing},
      {"run", "--save", directory.file("log")},
      {"run", "--json", directory.file("./log")},
      {"compare", "--json", directory.file("log")}};
  for (const auto& arguments : mistaken) {
    const Finished child = run_weir_train(arguments, logged);
    EXPECT_EQ(child.exit_code, 2) << child.err;
    EXPECT_EQ(std::ranges::count(child.err, '\n'), 1) << child.err;
    EXPECT_TRUE(read_file(directory.file("log")) == before) << child.err;
  }
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(CliOutput, JsonToStandardOutputFollowsTheTable) {
  const Finished child = succeeded(run_weir_train(short_run_to("/dev/stdout")));
  const std::size_t json = child.out.find('{');
  ASSERT_NE(json, std::string::npos);
  EXPECT_NE(child.out.substr(0, json).find("finished"), std::string::npos) << child.out;
  EXPECT_EQ(nlohmann::json::parse(child.out.substr(json))["result"]["outcome"], "finished");
}

TEST(CliOutput, JsonToAStandardOutputThatIsAFileFollowsTheTableToo) {
  const TemporaryDirectory directory;
  const std::string out = directory.file("out.txt");
  // By the file's own name: a mistake with /dev/stdout would destroy the machine's link.
  EXPECT_EQ(ChildProcess(short_run_to(out), {.stdout_path = out}).wait().exit_code, 0);
  const std::string text = read_file(out);
  EXPECT_TRUE(text.starts_with("policy ")) << text;
  const std::size_t json = text.find('{');
  ASSERT_NE(json, std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(text.substr(json))["result"]["outcome"], "finished");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(CliOutput, JsonToADashIsAllThatStandardOutputHas) {
  const Finished child = succeeded(run_weir_train(short_run_to("-")));
  EXPECT_EQ(nlohmann::json::parse(child.out)["result"]["outcome"], "finished");
}

TEST(CliOutput, WeightsAmongWhatIsPrintedAreRefused) {
  const TemporaryDirectory directory;
  const auto save_and_print = [](const std::string& save, const std::string& printed) {
    return ChildProcess({"run", "--batches", "1", "--batch-size", "1", "--save", save},
                        {.stdout_path = printed})
        .wait();
  };
  const std::string out = directory.file("out.txt");
  for (const std::string& save : {out, std::string("/proc/self/fd/1")}) {
    expect_refused_in_one_line(save_and_print(save, out),
                               {"--save='" + save + "'", "the table goes to standard output"});
  }
  EXPECT_EQ(save_and_print("/dev/null", "/dev/null").exit_code, 0);
}

TEST(CliOutput, AStandardOutputThatIsClosedIsAnErrorAndCostsNoFile) {
  const TemporaryDirectory directory;
  // Like /dev/stdout, which a mistake would destroy.
  std::filesystem::create_symlink("/proc/self/fd/1", directory.file("stdout"));
  for (const std::string& json : {directory.file("stdout"), directory.file("figures.json")}) {
    const Finished child = ChildProcess(short_run_to(json), {.stdout_is_closed = true}).wait();
    EXPECT_EQ(child.exit_code, 1);
    EXPECT_EQ(child.err, "weir-train: standard output cannot be written (Bad file descriptor)\n");
  }
  EXPECT_TRUE(std::filesystem::is_symlink(directory.file("stdout")));
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(CliOutput, AVariableWithAMistakeInItsNameIsNamedWithTheNearest) {
  const Finished child = succeeded(run_weir_train({"run", "--batches", "1", "--batch-size", "1"},
                                                  {{"WEIR_BUGET", "64MiB"}, {"WEIR_LOG", "warn"}}));
  EXPECT_TRUE(child.err.starts_with(
      "weir: WEIR_BUGET is set but is not a variable of Weir: the nearest is WEIR_BUDGET\n"))
      << child.err;
}

TEST(CliOutput, ARunThatDivergedSaysSoAndItsWeightsAreSavedOnlyAnyway) {
  const TemporaryDirectory directory;
  std::vector<std::string> words{"run",  "--batches", "3",      "--batch-size",           "8",
                                 "--lr", "1e30",      "--save", directory.file("weights")};
  for (const bool anyway : {false, true}) {
    if (anyway) words.emplace_back("--save-anyway");
    const Finished child = run_weir_train(words);
    EXPECT_EQ(child.exit_code, 1);
    EXPECT_NE(child.err.find("weir-train: training diverged"), std::string::npos) << child.err;
    EXPECT_NE(child.out.find(" diverged\n"), std::string::npos) << child.out;
    EXPECT_EQ(directory.entries(), anyway ? 1U : 0U);
  }
  const Finished compared = run_weir_train(
      {"compare", "--small", "--rounds", "1", "--batches", "3", "--no-search", "--lr", "1e30"});
  EXPECT_EQ(compared.exit_code, 1);
  EXPECT_NE(compared.err.find("weir-train: training diverged"), std::string::npos) << compared.err;
  EXPECT_NE(compared.out.find("bit-identical in all"), std::string::npos) << compared.out;
}

TEST(CliOutput, JsonThatCannotBeWrittenAtTheEndStillPrintsTheTable) {
  const TemporaryDirectory directory;
  const std::string full = directory.file("full");
  std::filesystem::create_symlink("/dev/full", full);
  const Finished child = run_weir_train(short_run_to(full));
  EXPECT_EQ(child.exit_code, 2);
  EXPECT_NE(child.out.find("finished"), std::string::npos);
  EXPECT_EQ(std::ranges::count(joined_lines(child.err, 2), '\n'), 2)
      << "settings and one line: " << child.err;
  EXPECT_NE(child.err.find("--json='" + full + "'"), std::string::npos) << child.err;
}

TEST(CliOutput, AStandardOutputThatIsFullOrHasNoReaderIsAnErrorAndTheJsonIsWritten) {
  for (const ChildOptions& options :
       {ChildOptions{.stdout_path = "/dev/full"}, ChildOptions{.stdout_has_no_reader = true}}) {
    const TemporaryDirectory directory;
    const std::string json = directory.file("figures.json");
    const Finished child = ChildProcess(short_run_to(json), options).wait();
    EXPECT_EQ(child.exit_code, 1);
    expect_parts(child.err, {"weir-train: standard output"});
    EXPECT_EQ(nlohmann::json::parse(read_file(json))["result"]["outcome"], "finished");
  }
}

}  // namespace
}  // namespace weir::testing
