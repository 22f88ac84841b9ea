// The file of a recording: the allowed names, what it replaces, and what remains of it on a full
// disk.

#include "tools/timeline/recorder/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "support/file_size_limit.hpp"
#include "support/message_of.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::timeline {
namespace {

using weir::testing::FileSizeLimit;
using weir::testing::message_of;
using weir::testing::read_file;
using weir::testing::write_file;

constexpr std::string_view kHead = "[\n{\"name\":\"weir_timeline\",\"ph\":\"M\"},\n";

class TimelineFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string in(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] static std::string refusal(const std::string& path) {
    return message_of<UsageError>([&] { (void)TimelineFile::open("WEIR_TIMELINE", path); });
  }
  [[nodiscard]] std::size_t files() const { return folder_.entries(); }

  const weir::testing::TemporaryDirectory folder_;
};

TEST_F(TimelineFileTest, CanBeReadAtItsNameWhileItIsWritten) {
  const auto file = TimelineFile::open("test", in("run.json"));
  file->append(kHead);
  EXPECT_EQ(read_file(in("run.json")), kHead);
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(file->path(), in("run.json"));
  EXPECT_TRUE(file->note().empty());
}

TEST_F(TimelineFileTest, ReplacesAnOldTimelineAndAnEmptyFile) {
  for (const std::string_view old : {std::string_view(), kHead}) {
    write_file(in("run.json"), old);
    const auto file = TimelineFile::open("test", in("run.json"));
    file->append("new");
    EXPECT_EQ(read_file(in("run.json")), "new");
    EXPECT_EQ(files(), 1U);
  }
}

TEST_F(TimelineFileTest, ReplacesAnOldCompressedTimelineAtTheEnd) {
  for (int i = 0; i < 2; ++i) {
    const auto file = TimelineFile::open("test", in("run.json.gz"));
    file->append(kHead);
    EXPECT_EQ(read_file(in("run.json.gz")), kHead) << "it can be read until then";
    file->complete([] {});
    file->close();
    EXPECT_EQ(file->path(), in("run.json.gz"));
    EXPECT_EQ(files(), 1U);
    EXPECT_NE(read_file(in("run.json.gz")), kHead);
    EXPECT_TRUE(is_timeline_or_empty(in("run.json.gz")));
  }
}

TEST_F(TimelineFileTest, ACompressedTimelineLeavesAnotherOneOfItsPlainName) {
  write_file(in("run.json"), kHead);
  const auto file = TimelineFile::open("test", in("run.json.gz"));
  file->append("new");
  file->complete([] {});
  file->close();
  EXPECT_EQ(read_file(in("run.json")), kHead);
  EXPECT_EQ(files(), 2U);
}

/// This process's descriptor for `path`, or -1.
int descriptor_of(const std::string& path) {
  struct stat named {};
  if (stat(path.c_str(), &named) != 0) return -1;
  for (int each = 0; each < 1024; ++each) {
    struct stat opened {};
    if (fstat(each, &opened) == 0 && opened.st_ino == named.st_ino) return each;
  }
  return -1;
}

// As a program does that becomes a daemon, or closes a descriptor twice.
TEST_F(TimelineFileTest, NeverWritesToAFileThatTookItsDescriptor) {
  for (const char* const name : {"run.json", "run.json.gz", "run.pftrace"}) {
    SCOPED_TRACE(name);
    auto file = TimelineFile::open("test", in(name));
    file->append(kHead);
    const int taken = descriptor_of(in(name));
    ASSERT_GE(taken, 0);
    ::close(taken);
    write_file(in("own"), "mine");
    const int own = ::open(in("own").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(own, taken);
    file->append("two");
    EXPECT_EQ(file->failure(), "");
    EXPECT_EQ(read_file(in(name)), std::string(kHead) + "two");
    EXPECT_EQ(read_file(in("own")), "mine");
    EXPECT_NE(TimelineFile::open("test", in(name))->note(), "") << "it is locked again";

    ::close(descriptor_of(in(name)));
    std::filesystem::remove(in(name));
    file->append("three");
    EXPECT_NE(file->failure(), "");
    file.reset();
    EXPECT_GE(fcntl(own, F_GETFD), 0) << "it is the program's to close";
    EXPECT_EQ(read_file(in("own")), "mine");
    ::close(own);
  }
}

TEST_F(TimelineFileTest, SaysThatItWasRemovedMeanwhile) {
  for (const char* const name : {"run.json", "run.json.gz", "run.pftrace"}) {
    const auto file = TimelineFile::open("test", in(name));
    file->append(kHead);
    std::filesystem::remove(in(name));
    EXPECT_EQ(file->failure(), "");
    file->complete([] {});
    EXPECT_EQ(file->failure(), "No such file or directory") << name;
    EXPECT_EQ(files(), 0U);
  }
}

// Another program records to this name now: we must not compress its file.
TEST_F(TimelineFileTest, LeavesAFileThatTookItsNameAndSaysSo) {
  for (const char* const name : {"run.json", "run.json.gz", "run.pftrace"}) {
    SCOPED_TRACE(name);
    const auto file = TimelineFile::open("test", in(name));
    file->append(kHead);
    std::filesystem::remove(in(name));
    write_file(in(name), "mine");
    file->complete([] {});
    EXPECT_EQ(file->failure(), "another file has taken its name");
    EXPECT_EQ(read_file(in(name)), "mine");
    std::filesystem::remove(in(name));
  }
}

TEST_F(TimelineFileTest, SaysThatItWasCutShortAndWritesNoMore) {
  const auto file = TimelineFile::open("test", in("run.json"));
  file->append(kHead);
  std::filesystem::resize_file(in("run.json"), 2);
  file->append("two");
  EXPECT_EQ(file->failure(), "the file was truncated by another program");
  EXPECT_EQ(read_file(in("run.json")), kHead.substr(0, 2));
}

// As for a program started by `program >&-`: its output must not get into the file.
TEST_F(TimelineFileTest, IsNeverStandardOutput) {
  const int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ASSERT_GE(before, 0);
  ::close(STDOUT_FILENO);
  const auto file = TimelineFile::open("test", in("run.json"));
  file->append(kHead);
  const bool is_free = fcntl(STDOUT_FILENO, F_GETFD) == -1;
  ::close(descriptor_of(in("run.json")));  // it opens the file anew then
  file->append("two");
  const bool stays_free = fcntl(STDOUT_FILENO, F_GETFD) == -1;
  dup2(before, STDOUT_FILENO);
  ::close(before);
  EXPECT_TRUE(is_free);
  EXPECT_TRUE(stays_free);
  EXPECT_EQ(read_file(in("run.json")), std::string(kHead) + "two");
}

TEST_F(TimelineFileTest, TheProcessNumberComesBeforeTheWholeEnding) {
  const auto first = TimelineFile::open("test", in("run.json.gz"));
  const auto second = TimelineFile::open("test", in("run.json.gz"));
  EXPECT_EQ(second->path(), in("run." + std::to_string(getpid()) + ".json.gz"));
}

TEST_F(TimelineFileTest, IsCompressedAsOneMemberThatHoldsAllOfIt) {
  std::string all(kHead);
  {
    const auto file = TimelineFile::open("test", in("run.json.gz"));
    file->append(kHead);
    for (int i = 0; i < 100'000; ++i) {
      const std::string line = "{\"ts\":" + std::to_string(i * 7919 % 100'003) + "},\n";
      all += line;
      file->append(line);
    }
    int advances = 0;
    file->complete([&] { ++advances; });
    EXPECT_GT(advances, 3);
  }
  const std::string compressed = read_file(in("run.json.gz"));
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(all.size() + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<unsigned>(compressed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U);
  out.resize(stream.total_out);
  EXPECT_EQ(out, all);
  inflateEnd(&stream);
}

TEST_F(TimelineFileTest, NeverReplacesSomethingElse) {
  for (const std::string_view other :
       {"my thesis", "[1, 2]", "<p>weir_timeline</p>", "\x1f\x8b not really"}) {
    write_file(in("run.json"), other);
    EXPECT_EQ(refusal(in("run.json")), "WEIR_TIMELINE='" + in("run.json") +
                                           "' is not allowed: a new file, or a timeline that it "
                                           "replaces");
    std::filesystem::rename(in("run.json"), in("run.json.gz"));
    EXPECT_NE(refusal(in("run.json.gz")), "");
    std::filesystem::rename(in("run.json.gz"), in("run.json"));
    EXPECT_EQ(read_file(in("run.json")), other);
    EXPECT_EQ(files(), 1U);
  }
}

TEST_F(TimelineFileTest, RefusesWhatCannotBeAFile) {
  std::filesystem::create_directory(in("folder.json"));
  std::filesystem::create_symlink("b.json", in("a.json"));
  std::filesystem::create_symlink("a.json", in("b.json"));
  ASSERT_EQ(mkfifo(in("pipe.json").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", in("full.json"));
  std::filesystem::create_symlink("/dev/stdout", in("stdout.json"));
  for (const std::string& path :
       {in("folder.json"), in("a.json"), in("pipe.json"), in("full.json"), in("stdout.json"),
        in("none/run.json"), std::string("/dev/run.json"), std::string("/proc/run.json")}) {
    const std::string line = refusal(path);
    EXPECT_NE(line.find(path), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST_F(TimelineFileTest, ASecondWriterTakesANameOfItsOwnAndTheFirstKeepsItsFile) {
  const auto first = TimelineFile::open("test", in("run.json"));
  first->append(kHead);
  const auto second = TimelineFile::open("test", in("run.json"));
  second->append(kHead);
  first->append(" more");
  const std::string other = in("run." + std::to_string(getpid()) + ".json");
  EXPECT_EQ(read_file(in("run.json")), std::string(kHead) + " more");
  EXPECT_EQ(read_file(other), kHead);
  EXPECT_EQ(second->note(), "another process writes to '" + in("run.json") +
                                "': this one writes to '" + other + "'");
  EXPECT_NE(refusal(in("run.json")).find("busy"), std::string::npos);
  EXPECT_EQ(files(), 2U);
}

TEST_F(TimelineFileTest, TheNameIsFreeAgainWhenTheFirstIsClosed) {
  auto first = TimelineFile::open("test", in("run.json"));
  first->append(kHead);
  first->close();
  const auto second = TimelineFile::open("test", in("run.json"));
  EXPECT_EQ(second->path(), in("run.json"));
}

TEST_F(TimelineFileTest, FollowsALinkToAFileThatIsNotThereYet) {
  std::filesystem::create_symlink("real.json", in("link.json"));
  const auto file = TimelineFile::open("test", in("link.json"));
  file->append(kHead);
  EXPECT_TRUE(std::filesystem::is_symlink(in("link.json")));
  EXPECT_EQ(read_file(in("real.json")), kHead);
}

TEST_F(TimelineFileTest, AFullDiskLeavesWhatWasWholeAndSaysSo) {
  const FileSizeLimit limit(1000);
  const auto file = TimelineFile::open("test", in("run.json"));
  const std::string event(300, 'e');
  for (int i = 0; i < 5; ++i) file->append(event);
  EXPECT_EQ(read_file(in("run.json")).size(), 900U);
  EXPECT_NE(file->failure(), "");
  file->append("x");  // nothing more, though there is room for it
  EXPECT_EQ(read_file(in("run.json")).size(), 900U);
}

TEST_F(TimelineFileTest, WithoutRoomToCompressItStaysAsItIs) {
  const auto file = TimelineFile::open("test", in("run.json.gz"));
  std::string noise(50'000, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = static_cast<char>((i * i * 2654435761U) >> 13U);
  }
  file->append(noise);
  {
    const FileSizeLimit limit(100);
    file->complete([] {});
  }
  EXPECT_NE(file->failure(), "");
  EXPECT_EQ(file->path(), in("run.json.gz"));
  EXPECT_EQ(read_file(in("run.json.gz")), noise);
  EXPECT_EQ(files(), 1U);
}

TEST_F(TimelineFileTest, AFileIsWrittenWholeOrNotAtAll) {
  EXPECT_EQ(write_whole(in("page.html"), "old"), "");
  {
    const FileSizeLimit limit(2);
    EXPECT_NE(write_whole(in("page.html"), "newer"), "");
  }
  EXPECT_EQ(read_file(in("page.html")), "old");
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace weir::timeline
