// `weir-train wide` under the mpirun of each MPI.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../ranks/mpirun.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A small network on the cpu, with these flags instead of or beside its own.
Words wide(const Words& more) {
  const std::vector<std::array<const char*, 2>> own{
      {"--device", "cpu"}, {"--budget", "64MiB"}, {"--scale", "0.002"},    {"--nnz", "10"},
      {"--pace", "5"},     {"--batch-size", "8"}, {"--test-batches", "3"}, {"--batches", "10"}};
  Words all{WEIR_TRAIN_PROGRAM, "wide"};
  for (const auto& [name, value] : own) {
    if (std::ranges::find(more, name) == more.end()) all.insert(all.end(), {name, value});
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// How many refusals there are. mpirun may interrupt a rank whose neighbour has ended, and it says
/// so.
std::ptrdiff_t refusals(const std::string& err) {
  return occurrences("\n" + err, "\nweir") -
         occurrences(err, "weir-train: stopping after the submitted work");
}

void expect_near(const json& found, const json& expected) {
  EXPECT_NEAR(found.get<double>(), expected.get<double>(), 1e-5 * expected.get<double>());
}

class CliRanks : public ByMpi {
 protected:
  static json figures_alone() {
    Words words = wide({"--json", "-"});
    words.erase(words.begin());  // the program
    return json::parse(run_weir_train(words).out);
  }
  static json figures(int ranks, const Words& more) {
    const TemporaryDirectory directory;
    Words words = wide(more);
    words.insert(words.end(), {"--json", directory.file("figures.json")});
    const Finished finished = succeeded(run_ranks(ranks, words));
    EXPECT_EQ(occurrences(finished.err, "settings: "), 1) << "one rank speaks\n" << finished.err;
    EXPECT_EQ(occurrences(finished.err, "batch 5, time "), 1) << finished.err;
    EXPECT_EQ(occurrences(finished.out, "precision@1, test"), 1) << finished.out;
    return json::parse(read_file(directory.file("figures.json")));
  }
};

TEST_P(CliRanks, RankZeroPrintsTheFiguresOfAll) {
  const json one = figures_alone();
  for (const char* const parallel : {"data", "model"}) {
    SCOPED_TRACE(parallel);
    const json two = figures(2, {"--parallel", parallel});
    const json& ranks = two["result"]["ranks"];
    EXPECT_EQ(ranks["ranks"], 2);
    EXPECT_EQ(ranks["engine"], GetParam().name);
    EXPECT_EQ(ranks["sent_bytes"], ranks["formula_bytes"]);
    EXPECT_GT(ranks["sent_bytes"], 0);
    EXPECT_THAT(ranks["step"].get<std::string>(), HasSubstr("rank 0 of 2 sends in a step: "));
    EXPECT_NEAR(two["result"]["mean_loss"].get<double>(), one["result"]["mean_loss"].get<double>(),
                1e-4);
    EXPECT_EQ(two["result"]["hit_share"], one["result"]["hit_share"]);
    EXPECT_EQ(two["result"]["test_accuracy"], one["result"]["test_accuracy"]);
    EXPECT_EQ(two["result"]["test_images"], 24);
  }
}

TEST_P(CliRanks, ADifferenceEndsAllWithOneLine) {
  Words words{"-n", "1"};
  const Words first = wide({"--parallel", "data"});
  const Words other = wide({"--parallel", "data", "--seed", "7"});
  words.insert(words.end(), first.begin(), first.end());
  words.insert(words.end(), {":", "-n", "1"});
  words.insert(words.end(), other.begin(), other.end());
  const Finished finished = start_mpirun(GetParam(), words).wait();
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(refusals(finished.err), 1) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("weir-train: the ranks differ in --seed: rank 0 has '1'; "
                                      "rank 1 has '7'\n"));
}

/// Otherwise the other ranks wait for it, under MPICH until the start's limit.
TEST_P(CliRanks, ThatCannotBeginEndAllWithOneLine) {
  const auto expect_refused = [](const Words& of_rank_1, const Words& of_all,
                                 const std::string& line) {
    Words words{"-n", "1"};
    for (const Words& own : {Words{}, of_rank_1}) {
      Words more = of_all;
      more.insert(more.end(), own.begin(), own.end());
      if (own != Words{"alone"}) more.insert(more.end(), {"--parallel", "data"});
      std::erase(more, "alone");
      const Words flags = wide(more);
      if (words.size() > 2) words.insert(words.end(), {":", "-n", "1"});
      words.insert(words.end(), flags.begin(), flags.end());
    }
    const Finished finished = start_mpirun(GetParam(), words).wait();
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(refusals(finished.err), 1) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("weir-train: " + line));
  };
  expect_refused({"--optimizer", "lion"}, {}, "rank 1: --optimizer='lion' is not allowed");
  expect_refused({"alone"}, {}, "rank 1: 2 ranks were started: --parallel data");
  expect_refused({}, {"--json", "/nowhere/file"}, "rank 0: --json='/nowhere/file' is not allowed");
  expect_refused({}, {"--precision", "fp8"}, "--precision='fp8' is not allowed");
}

TEST(CliRanksByMpich, OneCheckpointServesAnyNumberOfRanks) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("saved");
  const auto train = [&](int ranks, const char* batches, const Words& more) {
    Words words = wide({"--parallel", "data", "--checkpoint", file, "--batches", batches, "--json",
                        directory.file("figures.json")});
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.begin(), {"-n", std::to_string(ranks)});
    const Finished finished = succeeded(start_mpirun(kMpich, words).wait());
    return json::parse(read_file(directory.file("figures.json")));
  };
  const json whole = train(2, "10", {});
  std::filesystem::remove(file);
  (void)train(2, "4", {});
  const json rest = train(3, "10", {"--resume"});
  EXPECT_EQ(rest["result"]["first_batch"], 4);
  EXPECT_EQ(rest["result"]["batches"], 6);
  expect_near(rest["result"]["pace"].back()["mean_loss"],
              whole["result"]["pace"].back()["mean_loss"]);
  EXPECT_EQ(rest["result"]["test_accuracy"], whole["result"]["test_accuracy"]);
}

TEST(CliRanksByMpich, RefuseWhatTheyCannotShare) {
  const auto expect_refused = [](const char* ranks, const Words& more, const std::string& line) {
    Words words = wide(more);
    words.insert(words.begin(), {"-n", ranks});
    const Finished finished = start_mpirun(kMpich, words).wait();
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(refusals(finished.err), 1) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("weir-train: " + line));
  };
  expect_refused("2", {}, "2 ranks were started: --parallel data or --parallel model");
  expect_refused("3", {"--parallel", "data", "--batch-size", "2"},
                 "--batch-size='2' is not allowed: at least a row for each of the 3 ranks");
  expect_refused("4", {"--parallel", "model", "--outputs", "1500"},
                 "--parallel model needs an input and an output for each of the 4 ranks: this "
                 "network has 500 and 3");
}

INSTANTIATE_TEST_SUITE_P(Engines, CliRanks, ::testing::Values(kOpenMpi, kMpich), engine_name);

}  // namespace
}  // namespace weir::testing
