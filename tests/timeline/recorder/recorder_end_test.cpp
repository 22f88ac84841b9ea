// How recordings end: by the program, by a full disk, by a writer that throws and by a
// disk that hangs.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>

#include "kit.hpp"
#include "support/file_size_limit.hpp"
#include "support/log_capture.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::timeline {
namespace {

using weir::testing::LogCapture;

class RecorderEndTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.file("run.json"); }
  [[nodiscard]] std::string bytes(const char* more = "") const {
    return weir::testing::read_file(path() + more);
  }
  const weir::testing::TemporaryDirectory folder_;
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
    while (written->told().finished == 0)
      std::this_thread::yield();  // so that it is out of the writer
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
