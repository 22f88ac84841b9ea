// Reading libsvm files: none of their contents is trusted before it is checked.

#include "trainer/sparse/libsvm.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/sparse/sparse_set.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

constexpr SparseWidths kFiveByThree{.columns = 5, .classes = 3};

/// Hands out at most `piece` bytes at a time.
ReadBytes pieces_of(std::string_view text, std::size_t piece) {
  return [text, piece](std::span<char> to) mutable {
    const std::size_t count = std::min({piece, to.size(), text.size()});
    std::copy_n(text.begin(), count, to.begin());
    text.remove_prefix(count);
    return count;
  };
}

SparseRows parsed(std::string_view text, SparseWidths widths = {},
                  std::size_t piece = TextLines::kBlock) {
  TextLines lines("--data", "f", pieces_of(text, piece));
  return parse_libsvm(lines, widths);
}

SparseRows five_by_three() {
  return {.columns = 5,
          .classes = 3,
          .starts = {0, 2, 3, 3, 5},
          .indices = {0, 3, 1, 2, 4},
          .values = {0.5F, -2.0F, 1.0F, 1e-3F, 300.0F},
          .label_starts = {0, 2, 2, 3, 4},
          .labels = {0, 2, 1, 2}};
}

void expect_message(const std::string& message, const std::string& where,
                    const std::string& expected, const std::string& found) {
  EXPECT_EQ(message, "--data: f: " + where + ": expected " + expected + ", found " + found);
}

/// Expects the refusal of `text` for a file of five columns and three classes.
void expect_fault(std::string_view text, const std::string& where, const std::string& expected,
                  const std::string& found) {
  SCOPED_TRACE(text);
  expect_message(message_of<UsageError>([&] { (void)parsed(text, kFiveByThree); }), where, expected,
                 found);
}

TEST(Libsvm, ReadsLabelsAndEntriesCountedFromOne) {
  const char* const text =
      "# five columns, three classes\n"
      "2,0 1:0.5 4:-2\n"
      "\n"
      " 2:1 \t\n"
      "1\n"
      "2\t3:1e-3  5:3e2 # the last\r\n";
  EXPECT_EQ(parsed(text, kFiveByThree), five_by_three());
  EXPECT_EQ(parsed(text), five_by_three()) << "as wide as the rows need";
}

TEST(Libsvm, AFirstLineOfThreeNumbersMeansThatColumnsCountFromZero) {
  const char* const text = "4 5 3\n2,0 0:0.5 3:-2\n 1:1\n1\n2 2:1e-3 4:300\n";
  EXPECT_EQ(parsed(text), five_by_three());
  const SparseRows wider = parsed(text, {.columns = 9, .classes = 4});
  EXPECT_EQ(wider.columns, 9U);
  EXPECT_EQ(wider.classes, 4U);
  EXPECT_EQ(wider.indices, five_by_three().indices);
  EXPECT_EQ(parsed("1 8 7\n1 2:1\n").columns, 8U) << "its own widths, not those of its rows";
  EXPECT_EQ(parsed("1 8 7\n1 2:1\n").classes, 7U);
}

TEST(Libsvm, WhereTheFirstLineSaysHowManyAnEmptyLineIsARow) {
  const SparseRows rows = parsed("3 5 3\n\n# a comment is none\n2 1:1\n\n");
  EXPECT_EQ(rows.starts, (std::vector<std::uint64_t>{0, 0, 1, 1}));
  EXPECT_EQ(rows.label_starts, (std::vector<std::uint64_t>{0, 0, 1, 1}));
}

TEST(Libsvm, ARowMayBeginWithItsFirstEntry) {
  const SparseRows rows = parsed("4:1 5:1\n", kFiveByThree);
  EXPECT_TRUE(rows.labels.empty());
  EXPECT_EQ(rows.indices, (std::vector<std::uint32_t>{3, 4}));
}

TEST(Libsvm, ReadsEveryFormOfANumber) {
  const SparseRows rows = parsed("0 1:1 2:-.5 3:5. 4:1E+2 5:-0 6:3.4028235e38 7:1e-45 8:0.1\n");
  EXPECT_EQ(rows.values,
            (std::vector<float>{1, -0.5F, 5, 100, -0.0F, std::numeric_limits<float>::max(),
                                std::numeric_limits<float>::denorm_min(), 0.1F}));
}

TEST(Libsvm, IsTheSameInPiecesOfAnySize) {
  const std::string text = "2,0 1:0.5 4:-2\r\n 2:1\n1\n2 3:1e-3 5:300\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_EQ(parsed(text, kFiveByThree, piece), five_by_three()) << piece;
  }
}

TEST(Libsvm, ReadsLinesLongerThanABlock) {
  std::string text = "1";
  const std::uint32_t entries = 300'000;
  for (std::uint32_t i = 1; i <= entries; ++i) text += " " + std::to_string(i) + ":1";
  ASSERT_GT(text.size(), 2 * TextLines::kBlock);
  const SparseRows rows = parsed("0 1:2\n" + text + "\n2\n");
  EXPECT_EQ(rows.starts, (std::vector<std::uint64_t>{0, 1, 1 + entries, 1 + entries}));
  EXPECT_EQ(rows.indices.back(), entries - 1);
}

TEST(Libsvm, AWrongIndexIsRefusedAtItsPlace) {
  const char* const range = "an index from 1 to 5";
  expect_fault("1 1:1\n1 0:1\n", "line 2, column 3", range, "'0:1'");
  expect_fault("1 1:1 6:1\n", "line 1, column 7", range, "'6:1'");
  expect_fault("1 4294967297:1\n", "line 1, column 3", range, "'4294967297:1'");
  expect_fault("1 99999999999999999999:1\n", "line 1, column 3", range, "'99999999999999999999:1'");
  expect_fault("1 5 3\n0 5:1\n", "line 2, column 3", "an index from 0 to 4", "'5:1'");
  for (const char* entry : {"-1:1", "x:1", "1.5:1", ":1", "1", "1;1", "+1:1", "qid:3"}) {
    expect_fault("1 " + std::string(entry) + "\n", "line 1, column 3", "INDEX:VALUE",
                 "'" + std::string(entry) + "'");
  }
}

TEST(Libsvm, UnsortedAndRepeatedIndicesAreRefused) {
  expect_fault("1 3:1 2:1\n", "line 1, column 7", "an index above 3, the one before it", "'2:1'");
  expect_fault("1 3:1 3:1\n", "line 1, column 7", "an index above 3, the one before it", "'3:1'");
  expect_fault("1 5 3\n0 0:1 0:1\n", "line 2, column 7", "an index above 0, the one before it",
               "'0:1'");
}

TEST(Libsvm, AValueThatIsNoFiniteFloatIsRefused) {
  for (const char* value : {"nan", "-nan", "NaN", "inf", "-INF", "infinity", "1e39", "1e-50", "x",
                            "1x", "0x1p3", "--1", "1,2", "1:2"}) {
    expect_fault("1 1:1 2:" + std::string(value) + " 3:1\n", "line 1, column 9",
                 "a finite number that float32 can hold", "'" + std::string(value) + "'");
  }
}

TEST(Libsvm, ALabelThatIsNoClassIsRefused) {
  const char* const range = "a label from 0 to 2";
  for (const char* label : {"3", "-1", "1.5", "1.0", "x", "99999999999999999999", "+1", "1;2"}) {
    expect_fault(std::string(label) + " 1:1\n", "line 1, column 1", range,
                 "'" + std::string(label) + "'");
  }
  expect_fault("1,3 1:1\n", "line 1, column 3", range, "'3'");
  expect_fault("1, 1:1\n", "line 1, column 3", range, "''");
  expect_fault(",1 1:1\n", "line 1, column 1", range, "',1'");
  expect_fault("1,0,1 1:1\n", "line 1, column 1", "each label once", "'1,0,1'");
}

TEST(Libsvm, ACutLineIsRefused) {
  expect_fault("1 1:1\n1 2:", "line 2, column 5", "a line break (the file may be cut)",
               "the end of the file");
  expect_fault("1 1:1\n1 2:0.12", "line 2, column 9", "a line break (the file may be cut)",
               "the end of the file");
  expect_fault("1 2:\n", "line 1, column 5", "a finite number that float32 can hold",
               "the end of the line");
  expect_fault("1 2\n", "line 1, column 3", "INDEX:VALUE", "'2'");
}

TEST(Libsvm, RowsAreAsManyAsTheFirstLineSays) {
  expect_fault("3 5 3\n1 0:1\n2 1:1\n", "line 4, column 1", "3 rows, as the first line says",
               "the end of the file after 2");
  expect_fault("1 5 3\n1 0:1\n2 1:1\n", "line 3, column 1", "the end of the file after 1 rows",
               "another row");
}

TEST(Libsvm, AFirstLineThatDoesNotFitIsRefused) {
  const char* const form = "ROWS FEATURES LABELS, each from 1 to 4294967295";
  expect_fault("0 5 3\n", "line 1, column 1", form, "0 5 3");
  expect_fault("1 5 0\n", "line 1, column 1", form, "1 5 0");
  expect_fault("4294967296 5 3\n", "line 1, column 1", form, "4294967296 5 3");
  expect_fault("1 6 3\n0 0:1\n", "line 1, column 1", "at most 5 features", "6");
  expect_fault("1 5 4\n0 0:1\n", "line 1, column 1", "at most 3 labels", "4");
}

TEST(Libsvm, AFileWithoutRowsIsRefused) {
  for (const char* text : {"", "\n", "# nothing\n\n"}) {
    SCOPED_TRACE(text);
    const std::string message = message_of<UsageError>([&] { (void)parsed(text, kFiveByThree); });
    expect_parts(message, {"expected at least one row, found the end of the file"});
  }
}

TEST(Libsvm, WidthsMustFollowFromTheRowsIfNobodyGivesThem) {
  expect_message(message_of<UsageError>([] { (void)parsed("1\n"); }), "line 2, column 1",
                 "at least one entry in the file", "none");
  expect_message(message_of<UsageError>([] { (void)parsed("1:1\n"); }), "line 2, column 1",
                 "at least one label in the file", "none");
}

TEST(Libsvm, AFileOfAnotherKindIsRefused) {
  expect_fault("\x1f\x8b\x08 packed\n", "line 1, column 1", "text (unpack it first)", "gzip data");
  expect_fault("BZh91AY\n", "line 1, column 1", "text (unpack it first)", "bzip2 data");
  expect_fault(
      "\xfd"
      "7zXZ\n",
      "line 1, column 1", "text (unpack it first)", "xz data");
  expect_fault("1 1:1\n\x1b[2J\n", "line 2, column 1", "a label from 0 to 2", "'\\x1b[2J'");
  expect_fault("{\"text\": 1}\n", "line 1, column 1", "INDEX:VALUE", "'{\"text\":'");
}

TEST(Libsvm, ALineThatNeverEndsIsRefusedBeforeItTakesAllMemory) {
  TextLines lines("--data", "f", [](std::span<char> to) {
    std::ranges::fill(to, '\0');
    return to.size();
  });
  expect_message(message_of<UsageError>([&] { (void)parse_libsvm(lines, {}); }),
                 "line 1, column " + std::to_string(TextLines::kLongestLine),
                 "a line of at most 64 MiB", "a longer one");
}

TEST(Libsvm, AFileThatCannotBeReadIsRefused) {
  const TemporaryDirectory directory;
  const auto refusal = [&](const std::string& path) {
    return message_of<UsageError>([&] { (void)read_libsvm("--data", path, {}); });
  };
  const std::string path = directory.file("f");
  EXPECT_EQ(refusal(path), "--data: " + path + ": cannot be read (No such file or directory)");
  std::filesystem::create_directory(path);
  EXPECT_EQ(refusal(path), "--data: " + path + ": cannot be read (Is a directory)");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(refusal(path), "--data: " + path + ": expected a regular file");
}

TEST(Libsvm, ASetIsAsWideAsTheWiderOfItsFiles) {
  const TemporaryDirectory directory;
  write_file(directory.file(kSparseTrainFile), "0 1:1 7:1\n");
  write_file(directory.file(kSparseTestFile), "5 2:1\n");
  const SparseSet set = read_sparse_set("--data", directory.file(""), {});
  for (const SparseRows* rows : {&set.train, &set.test}) {
    EXPECT_EQ(rows->columns, 7U);
    EXPECT_EQ(rows->classes, 6U);
  }
  EXPECT_EQ(set.train.indices, (std::vector<std::uint32_t>{0, 6}));
  EXPECT_EQ(set.test.indices, (std::vector<std::uint32_t>{1}));
}

}  // namespace
}  // namespace weir::testing
