// How recordings end: by the program, by SIGKILL, by a full disk, by a writer that throws and by a
// disk that hangs.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>

#include "kit.hpp"
#include "support/file_size_limit.hpp"
#include "support/log_capture.hpp"
#include "support/random_seed.hpp"

namespace weir::timeline {
namespace {

using weir::testing::LogCapture;
using weir::testing::random_seed;
using weir::testing::seed_message;

class RecorderEndTest : public ::testing::Test {
 protected:
  RecorderEndTest() : folder_(::testing::TempDir() + "recorder." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~RecorderEndTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/run.json"; }
  [[nodiscard]] std::string bytes(const char* more = "") const {
    std::ifstream file(path() + more, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string folder_;
};

TEST_F(RecorderEndTest, ACompleteFileSaysSo) {
  Recorder& recorder = Recorder::make({}, in_file(path()));
  recorder.write(event(1));
  const RecordingResult result = recorder.finish();
  EXPECT_EQ(bytes(), "[ weir_timeline\n1 whole\nend 0\n");
  EXPECT_EQ(result.file, path());
  EXPECT_EQ(result.note, "");
}

TEST_F(RecorderEndTest, ACompressedFileIsPlainUntilTheEnd) {
  Recorder& recorder = Recorder::make({}, in_file(path() + ".gz"));
  recorder.write(event(1));
  (void)recorder.flush_now();
  EXPECT_EQ(bytes(".gz"), "[ weir_timeline\n1 whole\n");
  EXPECT_EQ(recorder.finish().file, path() + ".gz");
  EXPECT_EQ(bytes(".gz").substr(0, 2), "\x1f\x8b");
  EXPECT_FALSE(std::filesystem::exists(path()));
}

/// WEIR_TEST_KILLS: how many processes are killed; 20 by default.
int kills() {
  const char* const text = std::getenv("WEIR_TEST_KILLS");
  constexpr int kFew = 20;
  return text != nullptr ? std::atoi(text) : kFew;
}

/// Writes events 1, 2, ... forever, and reports through `progress` which are certainly flushed.
[[noreturn]] void record_for_ever(const std::string& path, int progress) {
  Recorder& recorder = Recorder::make({}, in_file(path), {.every = std::chrono::milliseconds(1)});
  for (std::uint64_t id = 1;; ++id) {
    recorder.write(event(id));
    if (id % 500 != 0) continue;
    if (!recorder.flush_now()) _exit(1);
    if (write(progress, &id, sizeof id) != sizeof id) _exit(1);
  }
}

TEST_F(RecorderEndTest, AKilledProcessLeavesWholeEventsUpToItsLastFlush) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < kills(); ++i) {
    std::filesystem::remove(path());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) record_for_ever(path(), ends[1]);
    close(ends[1]);
    std::uint64_t flushed = 0;
    std::uint64_t next = 0;
    ASSERT_EQ(read(ends[0], &flushed, sizeof flushed), 8);
    const timespec moment{.tv_sec = 0, .tv_nsec = static_cast<long>(random() % 10'000'000)};
    nanosleep(&moment, nullptr);  // this moment is random
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    while (read(ends[0], &next, sizeof next) == sizeof next) flushed = next;
    close(ends[0]);

    const std::string all = bytes();
    std::istringstream lines(all.substr(0, all.rfind('\n') + 1));
    std::string line;
    std::getline(lines, line);
    ASSERT_EQ(line, "[ weir_timeline");
    std::uint64_t id = 0;
    while (std::getline(lines, line)) ASSERT_EQ(line, std::to_string(++id) + " whole");
    ASSERT_GE(id, flushed);
  }
}

TEST_F(RecorderEndTest, AFullDiskIsSaidOnceAndWhatIsNotInTheFileIsCounted) {
  const LogCapture capture;
  const weir::testing::FileSizeLimit limit(5000);
  Recorder& recorder = Recorder::make({}, in_file(path()));
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    recorder.write(event(id));
    if (id % 100 == 0) (void)recorder.flush_now();
  }
  EXPECT_FALSE(recorder.is_recording());
  EXPECT_EQ(timeline_sink(), nullptr);
  EXPECT_FALSE(recorder.flush_now());
  recorder.start();
  EXPECT_FALSE(recorder.is_recording());
  const RecordingResult result = recorder.finish();
  const std::string all = bytes();
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(all, '\n')) - 1;
  EXPECT_TRUE(all.ends_with(std::to_string(lines) + " whole\n"));
  EXPECT_EQ(lines % 100, 0U);
  EXPECT_EQ(result.lost + result.events, 1000U + 2);  // with the thread's name and the start
  EXPECT_EQ(result.events, lines + 2);
  EXPECT_EQ(capture.containing("nothing more is recorded").size(), 1U);
  EXPECT_NE(result.note.find("File too large"), std::string::npos) << result.note;
}

TEST_F(RecorderEndTest, AWriterThatThrowsEndsTheRecordingAndNotTheProgram) {
  const LogCapture capture;
  const Recording recording({}, [] { throw std::runtime_error("out of paper"); });
  recording->write(event(1));
  EXPECT_FALSE(recording->flush_now());
  EXPECT_FALSE(recording->is_recording());
  EXPECT_NE(recording->finish().note.find("out of paper"), std::string::npos);
  EXPECT_EQ(capture.containing("out of paper").size(), 1U);
}

TEST_F(RecorderEndTest, ADiskThatHangsDoesNotHoldTheProgramUp) {
  const LogCapture capture;
  std::atomic<bool> go{false};
  {
    const auto written = std::make_shared<Written>();
    RecorderOptions options;
    options.patience = std::chrono::milliseconds(5);
    Recorder& recorder =
        Recorder::make({}, in_memory(written, [&] { go.wait(false); }), std::move(options));
    recorder.write(event(1));
    EXPECT_FALSE(recorder.flush_now());
    (void)recorder.finish();
    EXPECT_EQ(capture.containing("does not answer").size(), 1U);
    go.store(true);
    go.notify_all();
    while (written->finished() == 0) std::this_thread::yield();  // so that it is out of the writer
  }
}

TEST_F(RecorderEndTest, TheRecordersThreadTakesNoSignals) {
  static std::atomic<pthread_t> handled_by{};
  (void)std::signal(SIGUSR1, [](int) { handled_by = pthread_self(); });
  const Recording recording;
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
  kill(getpid(), SIGUSR1);  // sent by kill(), another thread would have to take it
  for (int i = 0; i < 10; ++i) (void)recording->flush_now();
  EXPECT_EQ(handled_by.load(), pthread_t{});
  pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
  EXPECT_EQ(handled_by.load(), pthread_self());
  (void)std::signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace weir::timeline
