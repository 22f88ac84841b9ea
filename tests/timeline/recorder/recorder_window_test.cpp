// When it records: start and stop by call, by batch and by signal, and earlier live memory.

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <system_error>
#include <thread>

#include "allocator/timeline/source.hpp"
#include "kit.hpp"
#include "support/forked.hpp"
#include "support/log_capture.hpp"
#include "tools/timeline/recorder/recorder.hpp"

namespace weir::timeline {
namespace {

/// A pool with one block in it.
class FakeSource final : public TimelineSource {
 public:
  FakeSource() { enlist(); }
  ~FakeSource() override { leave(); }
  void add_figures(LiveFigures& /*figures*/) const override {}
  void record_live(TimelineSink& sink) override {
    sink.write({.id = 42,
                .bytes = 512,
                .name = sink.name("before"),
                .source = number(),
                .kind = TimelineKind::kLive});
  }
};

/// What instrumented code does.
void say(std::uint64_t id) {
  if (TimelineSink* const sink = timeline_sink()) sink->write(event(id));
}

TEST(RecorderWindow, StartsAndStopsAnyNumberOfTimes) {
  const Recording recording;
  for (std::uint64_t i = 0; i < 3; ++i) {
    say(10 * i + 1);
    recording->stop();
    EXPECT_EQ(timeline_sink(), nullptr);
    recording->stop();
    say(10 * i + 2);
    recording->start();
    recording->start();
    EXPECT_EQ(timeline_sink(), &recording.recorder());
  }
  (void)recording->finish();
  EXPECT_EQ(recording.written().ids(), (std::vector<std::uint64_t>{1, 11, 21}));
  EXPECT_EQ(recording.written().of(TimelineKind::kStart).size(), 4U);
  EXPECT_EQ(recording.written().of(TimelineKind::kStop).size(), 4U);
}

TEST(RecorderWindow, EachStartSaysWhatIsLiveAlready) {
  const FakeSource source;
  const Recording recording;
  recording->stop();
  recording->start();
  const auto live = recording.written().of(TimelineKind::kLive);
  ASSERT_EQ(live.size(), 2U);
  for (const auto& one : live) {
    EXPECT_EQ(one.record.id, 42U);
    EXPECT_EQ(one.name, "before");
    EXPECT_EQ(one.record.end, one.record.begin);
  }
  EXPECT_GE(live[0].record.begin, recording.written().of(TimelineKind::kStart)[0].record.begin);
}

/// Reports live memory until a fork begins, and a moment longer.
class SlowSource final : public TimelineSource {
 public:
  SlowSource() { enlist(); }
  ~SlowSource() override { leave(); }
  void add_figures(LiveFigures& /*figures*/) const override {}
  void record_live(TimelineSink& /*sink*/) override {
    inside = true;
    while (!fork_begins) std::this_thread::yield();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  static inline std::atomic<bool> inside{false};
  static inline std::atomic<bool> fork_begins{false};
};

TEST(RecorderWindow, AForkWaitsUntilWhatIsLiveWasSaid) {
  const Recording recording;
  recording->stop();
  const SlowSource source;
  // Registered after the sources' own, so it runs before it.
  pthread_atfork([] { SlowSource::fork_begins = true; }, nullptr, nullptr);
  std::thread starts([&] { recording->start(); });
  while (!SlowSource::inside) std::this_thread::yield();
  weir::testing::Forked child(
      [] { for_each_source([](TimelineSource&) {}); });  // its lock is free there
  starts.join();
  EXPECT_EQ(child.wait(), 0);
}

TEST(RecorderWindow, WhereItStopsAndStartsIsToldThoughThereIsNoRoom) {
  // The writer waits meanwhile, so the buffer is not emptied.
  std::atomic<bool> go{true};
  const Recording recording({.buffer = mib(1)}, [&] { go.wait(false); });
  (void)recording->flush_now();
  go = false;
  for (std::uint64_t id = 1; id <= 50'000; ++id) recording->write(event(id));
  std::thread stops([&] { recording->stop(); });  // both wait until the writer continues
  while (recording->is_recording()) std::this_thread::yield();
  std::thread starts([&] { recording->start(); });
  while (!recording->is_recording()) std::this_thread::yield();
  go = true;
  go.notify_all();
  stops.join();
  starts.join();
  EXPECT_GT(recording->finish().lost, 0U);
  EXPECT_EQ(recording.written().of(TimelineKind::kStart).size(), 2U);
  EXPECT_EQ(recording.written().of(TimelineKind::kStop).size(), 2U);
}

TEST(RecorderWindow, ARangeOfBatchesIsRecordedAndNothingElse) {
  const FakeSource source;
  const Recording recording({.batches = BatchRange{3, 5}});
  EXPECT_EQ(timeline_sink(), nullptr);
  for (std::uint32_t batch = 1; batch <= 8; ++batch) {
    if (TimelineSink* const batches = timeline_batches()) batches->note_batch(batch);
    say(batch);
  }
  (void)recording->finish();
  EXPECT_EQ(recording.written().ids(), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(recording.written().of(TimelineKind::kStart).size(), 1U);
  EXPECT_EQ(recording.written().of(TimelineKind::kStop).size(), 1U);
  EXPECT_EQ(timeline_batches(), nullptr);
}

TEST(RecorderWindow, ARangeThatNoBatchCameToIsSaidAtTheEnd) {
  const weir::testing::LogCapture capture;
  const Recording recording({.batches = BatchRange{3, 5}});
  for (const std::uint32_t batch : {1U, 2U}) recording->note_batch(batch);
  const std::string line = "nothing was recorded of batches from 3 on";
  EXPECT_EQ(recording->finish().note, line);
  EXPECT_EQ(capture.containing(line).size(), 1U);
}

TEST(RecorderWindow, ARangeThatWasBegunByHandIsNotSaidToBeEmpty) {
  const Recording recording({.batches = BatchRange{3, 5}});
  recording->start();
  EXPECT_EQ(recording->finish().note, "");
}

TEST(RecorderWindow, ARangeThatIsOverDoesNotBeginAgain) {
  const Recording recording({.batches = BatchRange{3, 5}});
  for (const std::uint32_t batch : {4U, 5U, 4U, 3U}) recording->note_batch(batch);
  EXPECT_FALSE(recording->is_recording());
}

TEST(RecorderWindow, ARangeWithoutAFirstBatchBeginsAtOnce) {
  const Recording recording({.batches = BatchRange{.end = 2}});
  EXPECT_TRUE(recording->is_recording());
  recording->note_batch(1);
  EXPECT_TRUE(recording->is_recording());
  recording->note_batch(2);
  EXPECT_FALSE(recording->is_recording());
}

TEST(RecorderWindow, BatchesMayBeNotedUnderALock) {
  const Recording recording({.batches = BatchRange{1, 2}});
  Mutex mutex(LockRank::kAdmission);
  const Lock lock(mutex);
  recording->note_batch(1);
  say(1);
  recording->note_batch(2);
  EXPECT_FALSE(recording->is_recording());
}

TEST(RecorderWindow, ASignalStopsAndStartsIt) {
  const Recording recording({.by_signal = true});
  for (const bool expected : {false, true, false}) {
    raise(SIGUSR2);
    (void)recording->flush_now();
    EXPECT_EQ(recording->is_recording(), expected);
  }
}

TEST(RecorderWindow, TheSignalIsLeftToAProgramThatHandlesIt) {
  static int handled = 0;
  (void)std::signal(SIGUSR2, [](int) { ++handled; });
  {
    const Recording recording({.by_signal = true});
    raise(SIGUSR2);
    (void)recording->flush_now();
    EXPECT_TRUE(recording->is_recording());
  }
  raise(SIGUSR2);
  EXPECT_EQ(handled, 2);
  (void)std::signal(SIGUSR2, SIG_DFL);
}

TEST(RecorderWindow, TheSignalDoesWhatItDidOnceTheRecordingIsOver) {
  (void)Recording({.by_signal = true})->finish();
  struct sigaction now {};
  ASSERT_EQ(sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(RecorderWindow, TheSignalIsNotTakenWhereNoThreadCanBeHad) {
  pthread_attr_t usual;
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 48U), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(Recorder::make({}, in_memory(std::make_shared<Written>()), {.by_signal = true}),
               std::system_error);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(timeline_sink(), nullptr);
  struct sigaction now {};
  ASSERT_EQ(sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

/// A profiler with hand-made records.
struct FakeActivity final : ActivitySource {
  struct Log {
    std::string refusal;
    int starts = 0;
    int stops = 0;
    int all = 0;
    std::atomic<std::uint64_t> lost = 0;  ///< the recorder's thread asks at any time
    std::uint64_t first_ns = 0;
    std::uint32_t known_thread = 0;    ///< of the system
    std::uint32_t unknown_thread = 0;  ///< that tells the recorder nothing
  };
  explicit FakeActivity(Log& to) : log(to) {}
  std::string start() override {
    ++log.starts;
    return log.refusal;
  }
  void stop() noexcept override { ++log.stops; }
  void collect(Collect what, TimelineSink& sink,
               std::vector<TimelineRecord>& records) noexcept override {
    if (what == Collect::kAll) {
      ++log.all;
      const std::uint64_t now =
          static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
      log.first_ns = now;
      records.push_back({.begin = now - 500,
                         .end = now,
                         .id = 7,
                         .name = sink.name("gemm"),
                         .kind = TimelineKind::kKernel});
      for (const std::uint32_t thread : {log.known_thread, log.unknown_thread}) {
        records.push_back(
            {.begin = now - 500, .end = now, .thread = thread, .kind = TimelineKind::kCall});
      }
      records.push_back({.begin = 1, .end = 2, .id = 8, .kind = TimelineKind::kKernel});
    }
  }
  std::uint64_t lost() const noexcept override { return log.lost; }
  static RecorderOptions options(Log& log) {
    RecorderOptions options;
    options.activity = std::make_unique<FakeActivity>(log);
    return options;
  }
  Log& log;
};

TEST(RecorderWindow, AProfilerRunsWhileItRecordsAndItsRecordsAreOnTheSameClock) {
  FakeActivity::Log log;
  const Recording recording(FakeActivity::options(log));
  EXPECT_EQ(log.starts, 1);
  log.lost = 5;
  recording->stop();
  (void)recording->flush_now();
  EXPECT_EQ(log.stops, 1);
  recording->start();
  EXPECT_EQ(log.starts, 2);
  const RecordingResult result = recording->finish();
  EXPECT_EQ(log.stops, 2);
  EXPECT_EQ(log.all, 2);
  EXPECT_EQ(result.lost, 5U);
  const auto kernels = recording.written().of(TimelineKind::kKernel);
  ASSERT_EQ(kernels.size(), 4U);
  const auto& last = *std::ranges::find_if(kernels.rbegin(), kernels.rend(),
                                           [](const auto& one) { return one.record.id == 7; });
  EXPECT_EQ(last.name, "gemm");
  EXPECT_EQ(last.record.end - last.record.begin, 500U);
  EXPECT_EQ(last.record.end + recording.written().told().info.monotonic_ns, log.first_ns);
  const auto lost = recording.written().of(TimelineKind::kLost);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].name, "the profiler had no room");
}

TEST(RecorderWindow, ThreadsOfAProfilerAreTheRecordersOwn) {
  FakeActivity::Log log;
  log.known_thread = static_cast<std::uint32_t>(gettid());
  log.unknown_thread = 4'000'000;
  const Recording recording(FakeActivity::options(log));
  recording->write(event(1));
  (void)recording->finish();
  const auto threads = recording.written().of(TimelineKind::kThread);
  ASSERT_EQ(threads.size(), 1U);
  const std::uint32_t own = threads[0].record.thread;
  const auto calls = recording.written().of(TimelineKind::kCall);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_NE(own, 0U);
  EXPECT_EQ(std::ranges::count(calls, own, [](const auto& one) { return one.record.thread; }), 1);
  EXPECT_NE(calls[0].record.thread, calls[1].record.thread);
}

TEST(RecorderWindow, AProfilerThatCannotStartIsSaidOnceAndTheRecordingGoesOn) {
  FakeActivity::Log log;
  log.refusal = "CUPTI has error 999";
  const Recording recording(FakeActivity::options(log));
  recording->stop();
  recording->start();
  recording->write(event(1));
  const RecordingResult result = recording->finish();
  EXPECT_EQ(log.starts, 1);
  EXPECT_EQ(log.stops, 0);
  EXPECT_EQ(result.note, log.refusal);
  ASSERT_EQ(recording.written().of(TimelineKind::kNote).size(), 1U);
  EXPECT_EQ(recording.written().of(TimelineKind::kNote)[0].name, log.refusal);
  EXPECT_EQ(recording.written().events().size(), 1U);
}

}  // namespace
}  // namespace weir::timeline
