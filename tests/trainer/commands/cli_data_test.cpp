// weir-train run --data, --save and predict as users see them.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/child_process.hpp"
#include "support/file_size_limit.hpp"
#include "support/joined_lines.hpp"
#include "trainer/digits.hpp"
#include "trainer/expect_parts.hpp"

namespace weir::testing {
namespace {

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
Words run_on(const DigitFiles& files, const Words& more = {}) {
  return joined({"run", "--data", files.directory()}, more);
}
Words predict_on(const DigitFiles& files, const Words& more = {}) {
  return joined({"predict", "--data", files.directory(), "--weights", files.path("weights")}, more);
}

void expect_refused(const Words& arguments, const Words& parts) {
  expect_refused_in_one_line(run_weir_train(arguments), parts);
}

nlohmann::json figures_at(const std::string& path) {
  return nlohmann::json::parse(read_file(path))["result"];
}

TEST(CliData, PredictAgreesWithTheAccuracyOfTheRunThatSavedTheWeights) {
  const DigitFiles files;
  const Finished run =
      succeeded(run_weir_train(run_on(files, {"--epochs", "8", "--save", files.path("weights"),
                                              "--json", files.path("run.json")})));
  const auto trained = figures_at(files.path("run.json"));
  EXPECT_EQ(trained["batches"], 80);
  EXPECT_EQ(trained["test_images"], 201);
  EXPECT_GT(trained["test_accuracy"].get<double>(), 0.8);
  expect_parts(run.err, {"epochs=8 (--epochs)", "batch-size=64 (default)", "lr=0.1 (default)",
                         "model=100 -> 256 -> 128 -> 10"});
  const Finished child =
      succeeded(run_weir_train(predict_on(files, {"--json", files.path("predict.json")})));
  EXPECT_EQ(figures_at(files.path("predict.json"))["test_accuracy"], trained["test_accuracy"]);
  const std::string row = "% of 201 test images\n";
  const std::size_t at = child.out.find(row);
  ASSERT_NE(at, std::string::npos) << child.out;
  EXPECT_NE(run.out.find(child.out.substr(at - 4, 4) + row), std::string::npos) << run.out;
  expect_refused(
      predict_on(files, {"--json", files.path("weights")}),
      {"--json='" + files.path("weights") + "'", "a different file from that of --weights"});
  EXPECT_EQ(run_weir_train(predict_on(files)).exit_code, 0) << "the weights are still there";
}

TEST(CliData, NothingThatIsReadIsWrittenTo) {
  const DigitFiles files;
  (void)succeeded(
      run_weir_train(run_on(files, {"--batches", "1", "--save", files.path("weights")})));
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const std::string hard = files.path(std::string("hard-") + name);
    std::filesystem::create_hard_link(files.path(name), hard);
    const std::string before = read_file(hard);
    for (const std::string& output : {files.path(name), hard}) {
      expect_refused(run_on(files, {"--save", output}), {"--save='" + output + "'", name});
      expect_refused(run_on(files, {"--json", output}), {"--json='" + output + "'", name});
    }
    EXPECT_EQ(read_file(files.path(name)), before);
  }
  const std::string test = files.path("t10k-labels-idx1-ubyte");
  expect_refused(predict_on(files, {"--json", test}), {"--json='" + test + "'"});
}

TEST(CliData, SaveWorksWithoutADataSet) {
  const TemporaryDirectory directory;
  const Words run{"run", "--batches", "1", "--batch-size", "1", "--save", directory.file("w")};
  EXPECT_EQ(run_weir_train(run).exit_code, 0);
  // 8 + 4 + 4 bytes, four widths, the floats of 512 -> 2048 -> 512 -> 1, a checksum.
  constexpr std::uintmax_t kFloats = 512 * 2048 + 2048 + 2048 * 512 + 512 + 512 + 1;
  EXPECT_EQ(std::filesystem::file_size(directory.file("w")), 16 + 16 + 4 * kFloats + 4);
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(CliData, AFullDiskKeepsTheOldWeightsAndTheFiguresAreNotLost) {
  const DigitFiles files;
  write_file(files.path("weights"), "weights of yesterday");
  Finished child;
  {
    const FileSizeLimit full_disk(65536);
    child = run_weir_train(run_on(files, {"--batches", "1", "--save", files.path("weights"),
                                          "--json", files.path("run.json")}));
  }
  EXPECT_EQ(child.exit_code, 2) << "signal " << child.signal;
  EXPECT_EQ(std::ranges::count(joined_lines(child.err, 2), '\n'), 2)
      << "settings and one line: " << child.err;
  expect_parts(child.err, {"--save='" + files.path("weights") + "'"});
  EXPECT_EQ(read_file(files.path("weights")), "weights of yesterday");
  EXPECT_EQ(figures_at(files.path("run.json"))["outcome"], "finished");
  const auto entries = std::distance(std::filesystem::directory_iterator(files.directory()), {});
  EXPECT_EQ(entries, 6) << "four files of data, the weights and the figures";
}

TEST(CliData, OutOfMemoryExits3AndSavesNothing) {
  const DigitFiles files;
  write_file(files.path("weights"), "weights of yesterday");
  const Finished run =
      run_weir_train(run_on(files, {"--budget", "256KiB", "--save", files.path("weights")}));
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("no weights were saved"), std::string::npos) << run.err;
  EXPECT_EQ(read_file(files.path("weights")), "weights of yesterday");

  (void)succeeded(
      run_weir_train(run_on(files, {"--batches", "1", "--save", files.path("weights")})));
  const Finished predicted = run_weir_train(predict_on(files, {"--budget", "64KiB"}));
  EXPECT_EQ(predicted.exit_code, 3);
  EXPECT_NE(predicted.out.find("out of memory in test batch 1"), std::string::npos);
}

TEST(CliData, CompareExits3WhenEveryPolicyRanOut) {
  const Finished child = run_weir_train(
      {"compare", "--small", "--rounds", "1", "--batches", "20", "--budget", "256KiB"});
  EXPECT_EQ(child.exit_code, 3) << child.err;
  EXPECT_NE(child.out.find(", 1 pair\n  with the reference"), std::string::npos) << child.out;
}

}  // namespace
}  // namespace weir::testing
