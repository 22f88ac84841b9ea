#include "tools/program/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "allocator/base/error.hpp"
#include "support/file_size_limit.hpp"
#include "support/message_of.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

void expect_one_line_naming(const std::string& message, const std::string& path) {
  EXPECT_NE(message.find("--json"), std::string::npos) << message;
  EXPECT_NE(message.find(path), std::string::npos) << message;
  EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
}

void expect_refused(const std::string& path) {
  SCOPED_TRACE(path);
  expect_one_line_naming(message_of<UsageError>([&] { OutputFile("--json", path); }), path);
}

TEST(OutputFile, WritesTheWholeContents) {
  const TemporaryDirectory directory;
  const std::string contents(1'000'000, 'x');
  OutputFile("--json", directory.file("out")).commit(contents);
  EXPECT_EQ(read_file(directory.file("out")), contents);
  EXPECT_EQ(directory.entries(), 1U);
}

// A process that is killed before the commit cannot clean up.
TEST(OutputFile, WithoutACommitNothingIsLeftAndAnOldFileStays) {
  const TemporaryDirectory directory;
  {
    const OutputFile file("--json", directory.file("new"));
    EXPECT_EQ(directory.entries(), 0U);
  }
  EXPECT_EQ(directory.entries(), 0U);
  write_file(directory.file("out"), "old");
  { const OutputFile file("--json", directory.file("out")); }
  EXPECT_EQ(read_file(directory.file("out")), "old");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(OutputFile, AWriteThatFailsHalfwayKeepsTheOldFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out");
  write_file(path, "old");
  for (const auto beside : {OutputFile::Beside::kAnyName, OutputFile::Beside::kOneName}) {
    OutputFile file("--json", path, beside);
    const FileSizeLimit limit(4096);
    file.begin();
    file.append(std::string(3000, 'x'));
    expect_one_line_naming(message_of<UsageError>([&] { file.append(std::string(3000, 'x')); }),
                           path);
    EXPECT_EQ(read_file(path), "old");
    EXPECT_EQ(directory.entries(), 1U) << "no partial file stays";
  }
}

TEST(OutputFile, InPiecesReplacesTheOldFileOnlyAtCommit) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out");
  write_file(path, "old");
  OutputFile file("--json", path, OutputFile::Beside::kOneName);
  for (const char* contents : {"new", "newer"}) {
    file.begin();
    file.append("discarded");
    file.begin();
    file.append(contents);
    file.append(" and more");
    EXPECT_FALSE(read_file(path).starts_with(contents));
    EXPECT_EQ(directory.entries(), 2U);
    file.commit();
    EXPECT_EQ(read_file(path), std::string(contents) + " and more");
    EXPECT_EQ(directory.entries(), 1U);
  }
  file.begin();
  file.append("discarded");
  file.discard();
  EXPECT_EQ(read_file(path), "newer and more");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(OutputFile, UnderOneNameIsWrittenOverWhatAKilledProcessLeft) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out");
  write_file(path + ".partial", "left, and longer than the new contents");
  { const OutputFile file("--json", path, OutputFile::Beside::kOneName); }
  EXPECT_EQ(directory.entries(), 0U);
  OutputFile file("--json", path, OutputFile::Beside::kOneName);
  write_file(path + ".partial", "left, and longer than the new contents");
  file.commit("new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(OutputFile, UnderOneNameOnlyOneWriterIsAllowedAtATime) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out");
  OutputFile first("--json", path, OutputFile::Beside::kOneName);
  OutputFile second("--json", path, OutputFile::Beside::kOneName);
  first.begin();
  const std::string message = message_of<UsageError>([&] { second.begin(); });
  expect_one_line_naming(message, path);
  EXPECT_NE(message.find("no other process writes now"), std::string::npos) << message;
  first.append("first");
  first.commit();
  second.commit("second");
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(OutputFile, UnderOneNameNothingButAFileIsWrittenOver) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out");
  const auto expect_kept = [&] {
    EXPECT_THROW(OutputFile("--json", path, OutputFile::Beside::kOneName), UsageError);
    EXPECT_EQ(directory.entries(), 2U);
  };
  write_file(directory.file("other"), "other");
  std::filesystem::create_symlink("other", path + ".partial");
  expect_kept();
  EXPECT_EQ(read_file(directory.file("other")), "other");
  std::filesystem::remove(path + ".partial");
  ASSERT_EQ(mkfifo((path + ".partial").c_str(), 0600), 0);
  expect_kept();
  const int reader =
      open((path + ".partial").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // now it can be opened
  expect_kept();
  close(reader);
}

TEST(OutputFile, ADirectoryThatWentAwayIsReportedAtCommit) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.file("sub"));
  const std::string path = directory.file("sub/out");
  OutputFile file("--json", path);
  std::filesystem::remove(directory.file("sub"));
  expect_one_line_naming(message_of<UsageError>([&] { file.commit("new"); }), path);
}

TEST(OutputFile, RefusesWhatCannotBeWrittenBeforeAnythingIsComputed) {
  const TemporaryDirectory directory;
  expect_refused(directory.file("missing/out"));
  expect_refused(directory.file(""));  // the directory itself
  std::filesystem::create_directory(directory.file("sub"));
  expect_refused(directory.file("sub"));
  expect_refused("/proc/version");
  expect_refused("/proc/none");
  expect_refused("");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(OutputFile, KeepsThePermissionsOfAnOldFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out");
  write_file(path, "old");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  OutputFile("--json", path).commit("new");
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(OutputFile, RefusesAFifoThatNobodyReads) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(message_of<UsageError>([&] { OutputFile("--json", path); }),
            "--json='" + path + "' is not allowed: a pipe that is being read");
}

TEST(OutputFile, WritesIntoAFifoAndNeverReplacesIt) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  OutputFile("--json", path).commit("figures");
  char text[16]{};
  EXPECT_EQ(read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "figures");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

// Devices stand behind a link here, so that a mistake costs the link and not the machine's device.

TEST(OutputFile, WritesToADeviceAndNeverReplacesIt) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("null");
  std::filesystem::create_symlink("/dev/null", path);
  OutputFile("--json", path).commit("figures");
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_TRUE(std::filesystem::is_character_file(path));
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(OutputFile, ADeviceThatIsFullIsReportedInOneLine) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("full");
  std::filesystem::create_symlink("/dev/full", path);
  OutputFile file("--json", path);
  expect_one_line_naming(message_of<UsageError>([&] { file.commit("figures"); }), path);
}

TEST(OutputFile, ThroughALinkItReplacesTheFileAndKeepsTheLink) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.file("sub"));
  write_file(directory.file("sub/real"), "old");
  std::filesystem::create_symlink("sub/real", directory.file("link"));
  OutputFile("--json", directory.file("link")).commit("new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory.file("link")));
  EXPECT_EQ(read_file(directory.file("sub/real")), "new");
}

TEST(OutputFile, WhereALinkPointsNowhereItMakesTheFileThereAndKeepsTheLink) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.file("sub"));
  std::filesystem::create_symlink("sub/new", directory.file("second"));
  std::filesystem::create_symlink(directory.file("second"), directory.file("first"));
  OutputFile("--json", directory.file("first")).commit("figures");
  EXPECT_TRUE(std::filesystem::is_symlink(directory.file("first")));
  EXPECT_TRUE(std::filesystem::is_symlink(directory.file("second")));
  EXPECT_EQ(read_file(directory.file("sub/new")), "figures");
}

TEST(OutputFile, NothingIsMadeOrReplacedUnderDevAndProc) {
  const TemporaryDirectory directory;
  const std::string link = directory.file("link");
  // The second is what /dev/stdout points to, in a process whose standard output is closed.
  for (const char* target : {"/dev/weir-test-nowhere", "/proc/self/fd/777", "/proc/version"}) {
    std::filesystem::create_symlink(target, link);
    expect_refused(link);
    EXPECT_TRUE(std::filesystem::is_symlink(link)) << target;
    std::filesystem::remove(link);
  }
  EXPECT_FALSE(std::filesystem::exists("/dev/weir-test-nowhere"));
}

TEST(OutputFile, LinksInACircleAreRefused) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("b", directory.file("a"));
  std::filesystem::create_symlink("a", directory.file("b"));
  expect_refused(directory.file("a"));
  EXPECT_TRUE(std::filesystem::is_symlink(directory.file("a")));
}

/// What `output` is refused with beside a file that is read; empty where it is not.
std::string refusal_beside(const std::string& output, const std::string& input) {
  try {
    require_different_files(std::array{NamedPath{"--json", output}},
                            std::array{NamedPath{"TRACE", input}});
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(DifferentFiles, AnOutputMayNotBeAnInputByWhateverName) {
  const TemporaryDirectory directory;
  const std::string input = directory.file("input");
  write_file(input, "read");
  std::filesystem::create_hard_link(input, directory.file("hard"));
  std::filesystem::create_symlink("input", directory.file("soft"));
  std::filesystem::create_directory(directory.file("sub"));
  for (const char* name : {"input", "hard", "soft", "sub/../input"}) {
    expect_one_line_naming(refusal_beside(directory.file(name), input), input);
  }
  write_file(directory.file("other"), "read");
  EXPECT_EQ(refusal_beside(directory.file("other"), input), "");
  EXPECT_EQ(refusal_beside(directory.file("new"), input), "");
  EXPECT_EQ(refusal_beside("/dev/null", "/dev/null"), "") << "it is no file";
}

TEST(DifferentFiles, TwoOutputsMayNotBeOneAlsoWhereItIsYetToBeMade) {
  const TemporaryDirectory directory;
  write_file(directory.file("old"), "old");
  std::filesystem::create_hard_link(directory.file("old"), directory.file("hard"));
  std::filesystem::create_symlink("new", directory.file("soft"));
  const auto check = [&](const char* a, const char* b) {
    require_different_files(
        std::array{NamedPath{"--save", directory.file(a)}, NamedPath{"--json", directory.file(b)}});
  };
  EXPECT_THROW(check("old", "hard"), UsageError);
  EXPECT_THROW(check("new", "soft"), UsageError);
  EXPECT_NO_THROW(check("new", "old"));
}

}  // namespace
}  // namespace weir::testing
