// The log as a file: its contents, and what survives crashes, forks, full disks and torn copies.
// One long file, because every case reads the same log in the same few ways.

#include "allocator/log/allocation_log.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log_reader.hpp"
#include "support/file_size_limit.hpp"
#include "support/forked.hpp"
#include "support/log_capture.hpp"
#include "support/print.hpp"
#include "support/sanitized.hpp"

namespace weir::testing {
namespace {

constexpr Bytes kMuch = gib(1);
constexpr std::size_t kPerChunk = AllocationLog::kChunk.count / sizeof(AllocationRecord);

class AllocationLogTest : public ::testing::Test {
 protected:
  AllocationLogTest() : path_(::testing::TempDir() + "allocations." + std::to_string(getpid())) {}
  ~AllocationLogTest() override { std::filesystem::remove(path_); }

  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(std::string_view contents) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << contents;
  }
  void overwrite(std::size_t offset, std::string_view with) const {
    std::string all = bytes();
    all.replace(offset, with.size(), with);
    replace(all);
  }
  /// Begins a new log, and ends it.
  void write_log(std::uint64_t records) const {
    std::filesystem::remove(path_);
    AllocationLog log("--log", path_, kMuch);
    write(log, 1, records);
  }
  static void write(AllocationLog& log, std::uint64_t first, std::uint64_t records) {
    for (std::uint64_t i = first; i < first + records; ++i) {
      log.write({.sequence = i,
                 .address = i * 512,
                 .bytes = i,
                 .stream = 3,
                 .pool = 1,
                 .event = AllocationEvent::kAllocate});
    }
  }
  /// The error of reading the file.
  [[nodiscard]] std::string refusal() const {
    try {
      (void)read_allocation_log(path_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  }

  const std::string path_;
};

TEST_F(AllocationLogTest, GivesBackWhatWasWrittenInOrder) {
  write_log(3 * kPerChunk + 7);
  const AllocationLogContents contents = read_allocation_log(path_);
  ASSERT_EQ(contents.records.size(), 3 * kPerChunk + 7);
  for (std::uint64_t i = 1; i <= contents.records.size(); ++i) {
    const AllocationRecord& record = contents.records[i - 1];
    EXPECT_EQ(record.sequence, i);
    EXPECT_EQ(record.address, i * 512);
    EXPECT_EQ(record.bytes, i);
    EXPECT_EQ(record.stream, 3U);
    EXPECT_EQ(record.pool, 1U);
    EXPECT_EQ(record.event, AllocationEvent::kAllocate);
    EXPECT_EQ(record.thread, contents.records[0].thread);
    if (i > 1) {
      EXPECT_GE(record.time, contents.records[i - 2].time);
    }
  }
  EXPECT_TRUE(contents.complete);
  EXPECT_EQ(contents.lost, 0U);
  EXPECT_GT(contents.unix_ns, 0U);
}

TEST_F(AllocationLogTest, IsReadableWhileItIsWrittenAndThenSaysThatItIsNotComplete) {
  AllocationLog log("--log", path_, kMuch);
  write(log, 1, 5);
  const AllocationLogContents contents = read_allocation_log(path_);
  EXPECT_EQ(contents.records.size(), 5U);
  EXPECT_FALSE(contents.complete);
}

TEST_F(AllocationLogTest, ACrashLeavesALogThatReadsUpToIt) {
  for (const int signal : {SIGKILL, SIGSEGV}) {
    const auto crash = [&] {
      const rlimit no_core{0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      std::signal(signal, SIG_DFL);  // a sanitizer handles SIGSEGV
      AllocationLog log("--log", path_, kMuch);
      write(log, 1, kPerChunk + 100);
      raise(signal);
    };
    ASSERT_EQ(run_forked(crash), -signal);
    const AllocationLogContents contents = read_allocation_log(path_);
    EXPECT_EQ(contents.records.size(), kPerChunk + 100);
    EXPECT_FALSE(contents.complete);
  }
}

TEST_F(AllocationLogTest, ARecordThatACrashCutIsNotReadNorIsWhatIsBehindIt) {
  write_log(10);
  // The sequence is stored last: zero is a record that was being written.
  overwrite(AllocationLogHeader::kBytes + 6 * sizeof(AllocationRecord), std::string(8, '\0'));
  EXPECT_EQ(read_allocation_log(path_).records.size(), 6U);
}

TEST_F(AllocationLogTest, ReadsAFileThatEndsAnywhereBehindItsHeader) {
  write_log(10);
  const std::string whole = bytes();
  for (std::size_t records : {0U, 3U, 9U}) {
    for (std::size_t part : {0U, 1U, 47U}) {
      replace(
          whole.substr(0, AllocationLogHeader::kBytes + records * sizeof(AllocationRecord) + part));
      EXPECT_EQ(read_allocation_log(path_).records.size(), records);
    }
  }
}

TEST_F(AllocationLogTest, ACopyThatWasCutEndsThereAndWhatIsBehindItIsRead) {
  write_log(3 * kPerChunk);
  const std::string whole = bytes();
  for (std::size_t pages = 1; pages < 16; ++pages) {  // a write that runs out of room ends there
    replace(whole);
    const std::size_t copy = AllocationLogHeader::kBytes + AllocationLog::kChunk.count;
    const std::size_t there = pages * 4096;
    overwrite(copy + there, std::string(AllocationLog::kChunk.count - there, '\0'));
    const AllocationLogContents contents = read_allocation_log(path_);
    EXPECT_EQ(contents.records.size(), there / sizeof(AllocationRecord) + 2 * kPerChunk);
  }
}

TEST_F(AllocationLogTest, EveryThreadsEventsAreThereAndNamedAfterIt) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 2 * kPerChunk + 11;
  {
    AllocationLog log("--log", path_, kMuch);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&log, t] { write(log, 1 + t * kEach, kEach); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const AllocationLogContents contents = read_allocation_log(path_);
  ASSERT_EQ(contents.records.size(), kThreads * kEach);
  for (std::uint64_t i = 0; i < contents.records.size(); ++i) {
    ASSERT_EQ(contents.records[i].sequence, i + 1);
    ASSERT_EQ(contents.records[i].thread, contents.records[i / kEach * kEach].thread);
  }
}

TEST_F(AllocationLogTest, ThreadsThatEndLeaveTheirPieceToOthers) {
  {
    AllocationLog log("--log", path_, kMuch);
    for (std::uint64_t t = 0; t < 100; ++t) {
      std::thread([&log, t] { write(log, 1 + t * 10, 10); }).join();
    }
  }
  EXPECT_EQ(read_allocation_log(path_).records.size(), 1000U);
  EXPECT_EQ(std::filesystem::file_size(path_),
            AllocationLogHeader::kBytes + AllocationLog::kChunk.count);
}

TEST_F(AllocationLogTest, OneThreadCanWriteToTwoLogsInTurn) {
  const std::string other = path_ + ".other";
  {
    AllocationLog first("--log", path_, kMuch);
    AllocationLog second("--log", other, kMuch);
    for (std::uint64_t i = 0; i < 20; ++i) {
      write(first, 1 + i, 1);
      write(second, 1 + i, 1);
    }
  }
  EXPECT_EQ(read_allocation_log(path_).records.size(), 20U);
  EXPECT_EQ(read_allocation_log(other).records.size(), 20U);
  std::filesystem::remove(other);
}

TEST_F(AllocationLogTest, CountsWhatTheLimitLeavesNoRoomForAndWarns) {
  const LogCapture capture;
  {
    // Room for the ring and one copy of it.
    AllocationLog log("--log", path_,
                      Bytes{AllocationLogHeader::kBytes} + AllocationLog::kChunk * 2);
    write(log, 1, 2 * kPerChunk + 42);
    EXPECT_EQ(log.lost(), kPerChunk);
  }
  EXPECT_EQ(capture.containing("1365 events are lost").size(), 1U);
  const AllocationLogContents contents = read_allocation_log(path_);
  EXPECT_EQ(contents.lost, kPerChunk);
  ASSERT_EQ(contents.records.size(), kPerChunk + 42) << "the first, and those still in the ring";
  EXPECT_EQ(contents.records[kPerChunk - 1].sequence, kPerChunk);
  EXPECT_EQ(contents.records[kPerChunk].sequence, 2 * kPerChunk + 1);
}

TEST_F(AllocationLogTest, CountsWhatAFullDiskLeavesNoRoomFor) {
  const auto fill = [&] {  // the limit is per process, which ignores its signal
    std::signal(SIGXFSZ, SIG_IGN);
    AllocationLog log("--log", path_, kMuch);
    write(log, 1, 10);
    const rlimit no_more{AllocationLogHeader::kBytes + AllocationLog::kChunk.count, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &no_more);
    write(log, 11, kPerChunk);
    return log.lost() == kPerChunk ? 0 : 1;
  };
  EXPECT_EQ(run_forked(fill), 0);
  const AllocationLogContents contents = read_allocation_log(path_);
  EXPECT_EQ(contents.records.size(), 10U);
  EXPECT_EQ(contents.lost, kPerChunk);
}

TEST_F(AllocationLogTest, OfACopyThatADiskHasNoRoomForNothingIsReadAndAllIsCounted) {
  constexpr std::uint64_t kEvents = 2 * kPerChunk + 42;
  {
    AllocationLog log("--log", path_, kMuch);
    write(log, 1, 10);
    const FileSizeLimit limit(AllocationLogHeader::kBytes + AllocationLog::kChunk.count + 12288);
    write(log, 11, kEvents - 10);
    EXPECT_EQ(log.lost(), 2 * kPerChunk);
  }
  const AllocationLogContents contents = read_allocation_log(path_);
  EXPECT_EQ(contents.records.size() + contents.lost, kEvents);
}

TEST_F(AllocationLogTest, ALogThatCannotBeHadReplacesNone) {
  write_log(5);
  {
    const FileSizeLimit limit(100);
    EXPECT_THROW(AllocationLog("--log", path_, kMuch), UsageError);
  }
  EXPECT_EQ(read_allocation_log(path_).records.size(), 5U);
  for (const auto& entry : std::filesystem::directory_iterator(::testing::TempDir())) {
    EXPECT_FALSE(entry.path().string().starts_with(path_ + ".")) << entry.path();
  }
}

#if WEIR_TEST_SANITIZED == 0  // after such a fork a sanitizer's own allocator may be broken
TEST_F(AllocationLogTest, AForkedChildEndsThoughAnotherThreadHeldALockWhenItForked) {
  std::optional<AllocationLog> log(std::in_place, "--log", path_, kMuch);
  AllocationLog other("--log", path_ + ".other", kMuch);
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    // A thread that alternates between two logs takes the locks each time, and does little else.
    for (std::uint64_t i = 1; !stop; ++i) {
      write(*log, i, 1);
      write(other, i, 1);
    }
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(run_forked([&] { log.reset(); }), 0);
  }
  stop = true;
  busy.join();
  std::filesystem::remove(path_ + ".other");
}
#endif

TEST_F(AllocationLogTest, OfTheProcessTakesEventsAfterItsEndWasMarked) {
  const std::string path = path_ + ".exit";
  const auto end_the_process = [&] {
    // Like a pool that outlives every static object: called after the log's own end, if this is the
    // first log of the process.
    static AllocationLog* log = nullptr;
    (void)std::atexit([] { write(*log, 6, 5); });
    log = &AllocationLog::of_process("--log", path, kMuch);
    write(*log, 1, 5);
    std::exit(0);
  };
  EXPECT_EQ(run_forked(end_the_process), 0);
  const AllocationLogContents contents = read_allocation_log(path);
  EXPECT_EQ(contents.records.size(), 10U);
  EXPECT_TRUE(contents.complete);
  std::filesystem::remove(path);
}

TEST_F(AllocationLogTest, ThroughALinkItIsMadeOrReplacedWhereTheLinkPoints) {
  const std::string target = path_ + ".target";
  std::filesystem::create_symlink(target, path_);
  for (const std::uint64_t records : {3U, 5U}) {
    {
      AllocationLog log("--log", path_, kMuch);
      write(log, 1, records);
    }
    EXPECT_TRUE(std::filesystem::is_symlink(path_));
    EXPECT_EQ(read_allocation_log(target).records.size(), records);
  }
  std::filesystem::remove(target);
}

TEST_F(AllocationLogTest, ADeviceWithoutAnEndIsNotRead) {
  EXPECT_THROW((void)read_allocation_log("/dev/zero"), UsageError);
}

TEST_F(AllocationLogTest, AForkedChildWritesNothing) {
  std::optional<AllocationLog> log(std::in_place, "--log", path_, kMuch);
  write(*log, 1, 5);
  const auto write_in_a_child = [&] {
    write(*log, 6, 100);
    std::thread([&] { write(*log, 106, 100); }).join();
    log.reset();  // nor does it end the parent's log
  };
  EXPECT_EQ(run_forked(write_in_a_child), 0);
  EXPECT_FALSE(read_allocation_log(path_).complete);
  write(*log, 6, 5);
  log.reset();
  const AllocationLogContents contents = read_allocation_log(path_);
  EXPECT_EQ(contents.records.size(), 10U);
  EXPECT_TRUE(contents.complete);
}

TEST_F(AllocationLogTest, ReplacesAnOldLogWithoutTouchingWhoStillWritesIt) {
  AllocationLog old("--log", path_, kMuch);
  write(old, 1, 5);
  {
    AllocationLog replacement("--log", path_, kMuch);
    write(replacement, 1, 3);
  }
  write(old, 6, kPerChunk);
  EXPECT_EQ(read_allocation_log(path_).records.size(), 3U);
}

TEST_F(AllocationLogTest, RefusesToReplaceWhatIsNoLog) {
  replace("the only copy of a thesis");
  EXPECT_THROW(AllocationLog("--log", path_, kMuch), UsageError);
  EXPECT_EQ(bytes(), "the only copy of a thesis");
}

TEST_F(AllocationLogTest, RefusesAPathThatCannotBeWritten) {
  for (const std::string& path :
       {std::string("/dev/null"), ::testing::TempDir(), path_ + "/missing/log", std::string()}) {
    try {
      const AllocationLog log("WEIR_ALLOC_LOG", path, kMuch);
      ADD_FAILURE() << path;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("WEIR_ALLOC_LOG='" + path + "'"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(AllocationLogTest, ReadingWhatIsNoLogSaysFileOffsetExpectedAndFound) {
  EXPECT_NE(refusal().find("cannot be read"), std::string::npos) << "a missing file";
  replace("short");
  EXPECT_NE(refusal().find("at offset 5: expected an allocation log's header"), std::string::npos);
  replace(std::string(8192, 'x'));
  EXPECT_NE(refusal().find("at offset 0: expected an allocation log"), std::string::npos);
  write_log(3);
  overwrite(8, "\x02");
  EXPECT_NE(refusal().find("at offset 8: expected version (1), found 2"), std::string::npos);
  write_log(3);
  overwrite(16, std::string(4, '\0'));
  EXPECT_NE(refusal().find("at offset 16: expected a chunk"), std::string::npos);
  write_log(1);
  overwrite(56, std::string(8, '\xff'));  // no number
  EXPECT_NE(refusal().find("at offset 56: expected a tick of up to a second"), std::string::npos);
  write_log(3);
  const std::size_t event = AllocationLogHeader::kBytes + 2 * sizeof(AllocationRecord);
  overwrite(event + 46, "\x09");
  EXPECT_EQ(refusal(), "'" + path_ + "' at offset " + std::to_string(event) +
                           ": expected an event from 1 to 7, found 9");
}

}  // namespace
}  // namespace weir::testing
