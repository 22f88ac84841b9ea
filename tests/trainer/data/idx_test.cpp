// Reading IDX files: none of their contents is trusted before it is checked. Through the program:
// cli_data_test.cpp.

#include "trainer/data/idx.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/digits.hpp"
#include "trainer/expect_parts.hpp"

namespace weir::testing {
namespace {

std::string refusal(const DigitFiles& files) {
  return message_of<UsageError>([&] { (void)read_data_set("--data", files.directory()); });
}

void expect_line(const std::string& message, const std::vector<std::string>& parts) {
  expect_parts(message, parts);
  EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
}

/// Changes one file, and expects the refusal to name it, the offset, and the value there.
struct Damage {
  const char* file;
  std::size_t offset;
  const char* expected;
  const char* found;
};
void expect_refused(const Damage& damage, const std::string& contents) {
  SCOPED_TRACE(damage.file);
  const DigitFiles files;
  write_file(files.path(damage.file), contents);
  expect_line(refusal(files),
              {"--data: ", files.path(damage.file), "at offset " + std::to_string(damage.offset),
               std::string("expected ") + damage.expected, std::string("found ") + damage.found});
}

std::string with_bytes(std::string contents, std::size_t offset, const std::string& bytes) {
  return contents.replace(offset, bytes.size(), bytes);
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> shift)));
  }
  return bytes;
}

TEST(Idx, ReadsWhatWasWritten) {
  const DigitFiles files;
  const DataSet read = read_data_set("--data", files.directory());
  const DataSet& written = *digit_set();
  for (const auto& [ours, theirs] :
       {std::pair(read.train, written.train), std::pair(read.test, written.test)}) {
    EXPECT_EQ(ours.count, theirs.count);
    EXPECT_EQ(ours.rows, kDigitSide);
    EXPECT_EQ(ours.columns, kDigitSide);
    EXPECT_EQ(ours.pixels, theirs.pixels);
    EXPECT_EQ(ours.labels, theirs.labels);
  }
  EXPECT_EQ(read.classes, kDigits);
  EXPECT_EQ(read_test_images("--data", files.directory()).labels, written.test.labels);
}

TEST(Idx, SizesAreBigEndianAndRowsComeBeforeColumns) {
  DataSet set{.train = {.count = 258, .rows = 2, .columns = 3}, .test = {}, .classes = 2};
  set.train.pixels.resize(258 * set.train.pixels_per_image());
  set.train.labels.resize(258, 1);
  set.test = set.train;
  const DigitFiles files(set);
  EXPECT_EQ(read_file(files.path(kTrainImages)).substr(4, 12),
            std::string("\0\0\1\2\0\0\0\2\0\0\0\3", 12));
  const DataSet read = read_data_set("--data", files.directory());
  EXPECT_EQ(read.train.count, 258U);
  EXPECT_EQ(read.train.rows, 2U);
  EXPECT_EQ(read.train.columns, 3U);
}

TEST(Idx, TakesTheNamesWithADotToo) {
  const DigitFiles files;
  for (const char* name : {kTrainImages, kTrainLabels, kTestImages, kTestLabels}) {
    std::string dotted = name;
    dotted[dotted.find("-idx")] = '.';
    std::filesystem::rename(files.path(name), files.path(dotted));
  }
  EXPECT_EQ(read_data_set("--data", files.directory()).train.count, 603U);
}

TEST(Idx, TheTestFilesAloneAreEnoughForThemselves) {
  const DigitFiles files;
  std::filesystem::remove(files.path(kTrainImages));
  std::filesystem::remove(files.path(kTrainLabels));
  EXPECT_EQ(read_test_images("--data", files.directory()).count, 201U);
}

TEST(Idx, AMissingFileIsNamed) {
  for (const char* name : {kTrainImages, kTrainLabels, kTestImages, kTestLabels}) {
    const DigitFiles files;
    std::filesystem::remove(files.path(name));
    expect_line(refusal(files), {files.path(name), "no such file"});
  }
}

TEST(Idx, APackedFileMustBeUnpacked) {
  const DigitFiles files;
  for (const char* packed : {"t10k-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte.gz"}) {
    std::filesystem::remove(files.path(kTestImages));
    write_file(files.path(packed), "\x1f\x8b");
    expect_line(refusal(files), {files.path(packed), "unpacked"});
    std::filesystem::remove(files.path(packed));
  }
}

TEST(Idx, WhatIsNoDirectoryOrNoFileIsRefused) {
  const DigitFiles files;
  for (const std::string& path : {files.path("missing"), files.path(kTrainImages), std::string()}) {
    expect_line(message_of<UsageError>([&] { (void)read_data_set("--data", path); }),
                {"--data='" + path + "'", "a directory that can be read"});
  }
  std::filesystem::remove(files.path(kTrainLabels));
  std::filesystem::create_directory(files.path(kTrainLabels));
  expect_line(refusal(files), {files.path(kTrainLabels), "directory"});
  std::filesystem::remove(files.path(kTrainLabels));
  ASSERT_EQ(mkfifo(files.path(kTrainLabels).c_str(), 0600), 0);
  expect_line(refusal(files), {files.path(kTrainLabels), "regular file"});
}

TEST(Idx, APathThatCannotBeLookedAtIsRefusedInOneLine) {
  const std::string long_name(5000, 'x');
  expect_line(message_of<UsageError>([&] { (void)read_data_set("--data", long_name); }),
              {"--data='xxx", "a directory that can be read"});
  const DigitFiles files;
  std::filesystem::remove(files.path(kTrainLabels));
  std::filesystem::create_symlink(kTrainLabels, files.path(kTrainLabels));  // to itself
  expect_line(refusal(files), {files.path(kTrainLabels), "cannot be read"});
}

TEST(Idx, ATruncatedFileIsRefusedWhereItEnds) {
  const std::string images = idx_images(digit_set()->train);
  const std::string labels = idx_labels(digit_set()->test);
  const char* const end = "the end of the file";
  expect_refused({kTrainImages, 0, "16 bytes", end}, "");
  expect_refused({kTrainImages, 15, "16 bytes", end}, images.substr(0, 15));
  expect_refused({kTrainImages, 16, "60316 bytes (603 images of 10 x 10)", end},
                 images.substr(0, 16));
  expect_refused({kTrainImages, 60315, "60316 bytes", end}, images.substr(0, 60315));
  expect_refused({kTestLabels, 7, "8 bytes", end}, labels.substr(0, 7));
  expect_refused({kTestLabels, 208, "209 bytes (201 labels)", end}, labels.substr(0, 208));
}

TEST(Idx, TrailingBytesAreRefused) {
  expect_refused({kTrainImages, 60316, "the end of the file", "1 more byte"},
                 idx_images(digit_set()->train) + "x");
  expect_refused({kTestLabels, 209, "the end of the file", "3 more bytes"},
                 idx_labels(digit_set()->test) + "xyz");
}

TEST(Idx, AFileThatIsFarTooLargeIsRefusedWithoutReadingIt) {
  const DigitFiles files;
  constexpr std::uintmax_t kTebibyte = std::uintmax_t{1} << 40U;
  std::error_code error;
  std::filesystem::resize_file(files.path(kTrainImages), kTebibyte, error);
  if (error) GTEST_SKIP() << "the file system has no sparse files of that size";
  expect_line(refusal(files), {files.path(kTrainImages), "at offset 60316", "more bytes"});
}

TEST(Idx, AFileThatMemoryCannotHoldIsRefused) {
  const DigitFiles files;
  constexpr std::uintmax_t k64GiB = std::uintmax_t{1} << 36U;
  std::string header = read_file(files.path(kTrainImages)).substr(0, 4);
  header += std::string("\x00\x01\x00\x00\x00\x00\x04\x00\x00\x00\x04\x00", 12);
  write_file(files.path(kTrainImages), header);
  std::error_code error;
  std::filesystem::resize_file(files.path(kTrainImages), 16 + k64GiB, error);
  if (error) GTEST_SKIP() << "the file system has no sparse files of that size";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{gib(16).count, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
  const std::string said = refusal(files);
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  expect_line(said, {files.path(kTrainImages), "memory for its 64.0 GiB is not available"});
}

TEST(Idx, AnotherMagicIsRefused) {
  const std::string images = idx_images(digit_set()->train);
  expect_refused({kTrainImages, 0, "magic 0x00000803 (images", "0x00000801"},
                 with_bytes(images, 0, big_endian(0x00000801)));
  expect_refused({kTrainImages, 0, "magic 0x00000803", "0x00000d03"},  // floats
                 with_bytes(images, 0, big_endian(0x00000d03)));
  expect_refused({kTrainImages, 0, "magic 0x00000803", "0x03080000"},  // little-endian
                 with_bytes(images, 0, big_endian(0x03080000)));
  expect_refused({kTestLabels, 0, "magic 0x00000801 (labels", "0x00000803"},
                 idx_images(digit_set()->test));
}

TEST(Idx, SizesOutOfBoundsAreRefusedAndNeverMultiplied) {
  const std::string images = idx_images(digit_set()->train);
  const char* const items = "a number of items from 1 to 16777216";
  expect_refused({kTrainImages, 4, items, "0"}, with_bytes(images, 4, big_endian(0)));
  expect_refused({kTrainImages, 4, items, "4294967295"},
                 with_bytes(images, 4, big_endian(0xFFFFFFFF)));
  expect_refused({kTestLabels, 4, items, "0"}, std::string("\0\0\x8\1\0\0\0\0", 8));
  const char* const pixels = "rows x columns from 1 to 16777216";
  expect_refused({kTrainImages, 8, pixels, "0 x 10"}, with_bytes(images, 8, big_endian(0)));
  expect_refused({kTrainImages, 8, pixels, "10 x 0"}, with_bytes(images, 12, big_endian(0)));
  // 2^16 x 2^16 would be no pixels in 32 bits, and with the count they would be none in 64.
  expect_refused({kTrainImages, 8, pixels, "65536 x 65536"},
                 with_bytes(images, 8, big_endian(65536) + big_endian(65536)));
  expect_refused({kTrainImages, 8, pixels, "4294967295 x 4294967295"},
                 with_bytes(images, 8, big_endian(0xFFFFFFFF) + big_endian(0xFFFFFFFF)));
}

TEST(Idx, AsManyLabelsAsImages) {
  LabelledImages fewer = digit_set()->train;
  fewer.count = 602;
  fewer.labels.pop_back();
  expect_refused({kTrainLabels, 4, "603 labels, as many as ", "602"}, idx_labels(fewer));
  LabelledImages more = digit_set()->train;
  more.count = 604;
  more.labels.push_back(0);
  expect_refused({kTrainLabels, 4, "603 labels, as many as ", "604"}, idx_labels(more));
}

TEST(Idx, TestImagesHaveTheSizeOfTheTrainingImages) {
  LabelledImages wider = digit_set()->test;
  wider.rows = 20;
  wider.columns = 5;
  expect_refused({kTestImages, 8, "images of 10 x 10", "20 x 5"}, idx_images(wider));
}

TEST(Idx, ATestLabelThatNoTrainingImageHasIsRefusedAtItsOffset) {
  LabelledImages test = digit_set()->test;
  test.labels[17] = 10;
  expect_refused({kTestLabels, 8 + 17, "a label from 0 to 9", "10"}, idx_labels(test));
}

TEST(Idx, OneClassIsNothingToLearn) {
  LabelledImages train = digit_set()->train;
  std::ranges::fill(train.labels, std::uint8_t{0});
  expect_refused({kTrainLabels, 8, "labels of at least 2 classes", "nothing but 0"},
                 idx_labels(train));
}

}  // namespace
}  // namespace weir::testing
