// weir-train run --data, --save and predict as users see them.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/file_size_limit.hpp"
#include "support/joined_lines.hpp"
#include "trainer/child_process.hpp"
#include "trainer/digits.hpp"

namespace weir::testing {
namespace {

using Words = std::vector<std::string>;

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

/// Exit 2 and one line with all of these parts; nothing on standard output.
void expect_refused(const Words& arguments, const Words& parts) {
  const Finished child = run_weir_train(arguments);
  EXPECT_EQ(child.exit_code, 2);
  EXPECT_EQ(child.out, "");
  EXPECT_EQ(std::ranges::count(child.err, '\n'), 1) << child.err;
  EXPECT_TRUE(child.err.starts_with("weir-train: ")) << child.err;
  for (const std::string& part : parts) {
    EXPECT_NE(child.err.find(part), std::string::npos) << part << " is missing: " << child.err;
  }
}

nlohmann::json figures_at(const std::string& path) {
  return nlohmann::json::parse(read_file(path))["result"];
}

TEST(CliData, PredictAgreesWithTheAccuracyOfTheRunThatSavedTheWeights) {
  const DigitFiles files;
  const Finished run = run_weir_train(run_on(
      files, {"--epochs", "8", "--save", files.path("weights"), "--json", files.path("run.json")}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto trained = figures_at(files.path("run.json"));
  EXPECT_EQ(trained["batches"], 80);
  EXPECT_EQ(trained["test_images"], 201);
  EXPECT_GT(trained["test_accuracy"].get<double>(), 0.8);
  for (const char* part : {"epochs=8 (--epochs)", "batch-size=64 (default)", "lr=0.1 (default)",
                           "model=100 -> 256 -> 128 -> 10"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " is missing: " << run.err;
  }
  for (const char* policy : {"throttled", "backstop", "unbounded", "barrier"}) {
    const Finished child = run_weir_train(
        predict_on(files, {"--policy", policy, "--json", files.path("predict.json")}));
    EXPECT_EQ(child.exit_code, 0) << child.err;
    const auto predicted = figures_at(files.path("predict.json"));
    EXPECT_EQ(predicted["test_accuracy"], trained["test_accuracy"]);
    const std::string row = "% of 201 test images\n";
    const std::size_t at = child.out.find(row);
    ASSERT_NE(at, std::string::npos) << child.out;
    EXPECT_NE(run.out.find(child.out.substr(at - 4, 4) + row), std::string::npos) << run.out;
  }
  expect_refused(
      predict_on(files, {"--json", files.path("weights")}),
      {"--json='" + files.path("weights") + "'", "a different file from that of --weights"});
  EXPECT_EQ(run_weir_train(predict_on(files)).exit_code, 0) << "the weights are still there";
}

TEST(CliData, NothingThatIsReadIsWrittenTo) {
  const DigitFiles files;
  ASSERT_EQ(
      run_weir_train(run_on(files, {"--batches", "1", "--save", files.path("weights")})).exit_code,
      0);
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

TEST(CliData, BatchesCutTrainingShortOrMakeItLonger) {
  const DigitFiles files;
  for (const char* batches : {"3", "13"}) {
    EXPECT_EQ(
        run_weir_train(run_on(files, {"--batches", batches, "--json", files.path("run.json")}))
            .exit_code,
        0);
    EXPECT_EQ(figures_at(files.path("run.json"))["batches"], std::stoi(batches));
  }
}

TEST(CliData, FlagsThatDoNotGoTogetherAreRefused) {
  const DigitFiles files;
  expect_refused({"run", "--epochs", "2"}, {"--epochs", "--data"});
  expect_refused(run_on(files, {"--epochs", "2", "--batches", "3"}), {"--epochs", "--batches"});
  expect_refused(run_on(files, {"--epochs", "0"}), {"--epochs='0'"});
  expect_refused({"predict", "--data", files.directory()}, {"--weights"});
  expect_refused({"predict", "--weights", files.path("w")}, {"--data"});
  expect_refused(predict_on(files, {"--epochs", "1"}), {"--epochs"});
  expect_refused({"compare", "--data", files.directory()}, {"--data"});
  std::filesystem::create_directory(files.path("sub"));
  expect_refused(run_on(files, {"--save", files.path("out"), "--json", files.path("sub/../out")}),
                 {"--save", files.path("out"), "--json"});
}

TEST(CliData, ABadFileIsNamedWithItsOffsetAndWhatWasExpectedAndFound) {
  const std::string images = idx_images(digit_set()->train);
  LabelledImages mislabelled = digit_set()->test;
  mislabelled.labels[5] = 200;
  LabelledImages fewer = digit_set()->train;
  fewer.count = 600;
  struct Case {
    const char* file;
    std::string contents;
    Words parts;
  };
  const std::vector<Case> cases{
      {kTrainImages, images.substr(0, 5000), {"at offset 5000", "60316 bytes", "end of the file"}},
      {kTrainImages, images + "x", {"at offset 60316", "end of the file", "1 more byte"}},
      {kTrainLabels, images, {"at offset 0", "0x00000801", "0x00000803"}},
      {kTrainLabels, idx_labels(fewer), {"at offset 4", "603 labels", "found 600"}},
      {kTestLabels, idx_labels(mislabelled), {"at offset 13", "from 0 to 9", "found 200"}}};
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.file);
    const DigitFiles files;
    write_file(files.path(bad.file), bad.contents);
    expect_refused(run_on(files), joined(bad.parts, {"--data", files.path(bad.file)}));
  }
}

TEST(CliData, AMissingFileOrDirectoryIsNamed) {
  const DigitFiles files;
  std::filesystem::remove(files.path(kTestImages));
  expect_refused(run_on(files), {files.path(kTestImages), "no such file"});
  expect_refused({"run", "--data", files.path("none")}, {files.path("none"), "directory"});
  expect_refused({"run", "--data", files.path(kTestLabels)}, {"directory"});
}

TEST(CliData, BadWeightsAreRefused) {
  const DigitFiles files;
  const std::string weights = files.path("weights");
  expect_refused(predict_on(files), {"--weights", weights, "cannot be read"});
  ASSERT_EQ(run_weir_train(run_on(files, {"--batches", "1", "--save", weights})).exit_code, 0);
  const std::string good = read_file(weights);
  write_file(weights, good.substr(0, 1000));
  expect_refused(predict_on(files), {weights, "at offset 1000", "expected", "end of the file"});
  std::string damaged = good;
  damaged[1000] ^= '\1';
  write_file(weights, damaged);
  expect_refused(predict_on(files), {weights, "checksum", "damaged"});
  write_file(weights, "not weights at all");
  expect_refused(predict_on(files), {weights, "at offset 0", "a weights file"});
  // Those of the d2l model: 512 inputs, while the images have 100 pixels.
  ASSERT_EQ(
      run_weir_train({"run", "--batches", "1", "--batch-size", "1", "--save", weights}).exit_code,
      0);
  expect_refused(predict_on(files),
                 {weights, "expected weights for 100 pixels", "found 512 -> 2048 -> 512 -> 1"});
}

TEST(CliData, WeightsOfFewerClassesAreRefusedAtTheLabelThatTheyLack) {
  DataSet two{.train = draw_digits(40, 1), .test = draw_digits(20, 2), .classes = 2};
  for (LabelledImages* images : {&two.train, &two.test}) {
    for (std::uint8_t& label : images->labels) label %= 2;
  }
  const DigitFiles files;
  const DigitFiles other(two);
  ASSERT_EQ(
      run_weir_train(run_on(other, {"--batches", "1", "--save", files.path("weights")})).exit_code,
      0);
  expect_refused(predict_on(files), {files.path(kTestLabels), "at offset 10", "from 0 to 1",
                                     "100 -> 256 -> 128 -> 2", "found 2"});
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
  EXPECT_NE(child.err.find("--save='" + files.path("weights") + "'"), std::string::npos)
      << child.err;
  EXPECT_EQ(read_file(files.path("weights")), "weights of yesterday");
  EXPECT_EQ(figures_at(files.path("run.json"))["outcome"], "finished");
  const auto entries = std::distance(std::filesystem::directory_iterator(files.directory()), {});
  EXPECT_EQ(entries, 6) << "four files of data, the weights and the figures";
}

TEST(CliData, APathThatCannotBeSavedToIsRefusedBeforeTraining) {
  const DigitFiles files;
  expect_refused(run_on(files, {"--save", files.path("none/weights")}),
                 {"--save='" + files.path("none/weights") + "'"});
}

TEST(CliData, OutOfMemoryExits3AndSavesNothing) {
  const DigitFiles files;
  write_file(files.path("weights"), "weights of yesterday");
  const Finished run =
      run_weir_train(run_on(files, {"--budget", "256KiB", "--save", files.path("weights")}));
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("no weights were saved"), std::string::npos) << run.err;
  EXPECT_EQ(read_file(files.path("weights")), "weights of yesterday");

  ASSERT_EQ(
      run_weir_train(run_on(files, {"--batches", "1", "--save", files.path("weights")})).exit_code,
      0);
  const Finished predicted = run_weir_train(predict_on(files, {"--budget", "64KiB"}));
  EXPECT_EQ(predicted.exit_code, 3);
  EXPECT_NE(predicted.out.find("out of memory in test batch 1"), std::string::npos);
}

TEST(CliData, ALossThatIsNanPrintsNoSign) {
  const DigitFiles files;
  const Finished child = run_weir_train(run_on(files, {"--lr", "1e30"}));
  EXPECT_EQ(child.exit_code, 1) << child.err;
  EXPECT_NE(child.out.find("mean loss             nan\n"), std::string::npos) << child.out;
}

TEST(CliData, CompareExits3WhenEveryPolicyRanOut) {
  const Finished child = run_weir_train(
      {"compare", "--small", "--rounds", "1", "--batches", "20", "--budget", "256KiB"});
  EXPECT_EQ(child.exit_code, 3) << child.err;
  EXPECT_NE(child.out.find(", 1 pair\n  with the reference"), std::string::npos) << child.out;
}

}  // namespace
}  // namespace weir::testing
