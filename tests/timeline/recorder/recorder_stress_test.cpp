// Everything at once: short-lived threads write, others open and close the window, run out of
// memory, fork and finally finish.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "allocator/base/mutex.hpp"
#include "allocator/timeline/source.hpp"
#include "kit.hpp"
#include "support/forked.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::timeline {
namespace {

using weir::testing::random_seed;
using weir::testing::seed_message;

constexpr int kRounds = WEIR_TEST_SANITIZED != 0 ? 40 : 150;
constexpr unsigned kMostEvents = 40;

/// A pool: it says what is live under its lock.
class LockedSource final : public TimelineSource {
 public:
  LockedSource() { enlist(); }
  ~LockedSource() override { leave(); }
  void add_figures(LiveFigures& /*figures*/) const override {}
  void record_live(TimelineSink& sink) override {
    const Lock lock(mutex_);
    for (std::uint64_t id = 1; id <= kBlocks; ++id) {
      sink.write({.id = id, .source = number(), .kind = TimelineKind::kLive});
    }
  }
  void take_lock() { const Lock lock(mutex_); }

 private:
  static constexpr std::uint64_t kBlocks = 100;
  Mutex mutex_{LockRank::kPool};
};

class RecorderStress : public ::testing::Test {
 protected:
  /// Threads of a program in turn. Each event has a unique number.
  void write_in_threads(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!stop_) {
      std::thread([this, count = random() % kMostEvents] {
        const std::string name = "thread " + std::to_string(gettid());
        for (std::uint64_t i = 0; i < count; ++i) {
          TimelineSink* const sink = timeline_sink();
          if (sink == nullptr) continue;
          TimelineRecord record = event(++last_id_);
          record.name = sink->name(name);
          sink->write(record);
        }
      }).join();
      ++threads_;
    }
  }
  /// The child takes no part, and finds no lock taken.
  static bool fork_is_quiet(Recorder& recorder, LockedSource& source) {
    return weir::testing::run_forked([&] {
             recorder.write(event(0));
             recorder.stop();
             recorder.start();
             for_each_source([](TimelineSource&) {});
             source.take_lock();
             const bool is_quiet = timeline_sink() == nullptr && recorder.file().empty() &&
                                   recorder.note().empty() && recorder.note_failure() == nullptr &&
                                   recorder.finish().events == 0;
             return is_quiet ? 0 : 1;
           }) == 0;
  }
  void do_something(Recorder& recorder, LockedSource& source, std::mt19937_64& random) {
    switch (random() % 6) {
      case 0:
        return recorder.start();
      case 1:
        return recorder.stop();
      case 2:
        (void)kill(getpid(), SIGUSR2);
        return;
      case 3:
        (void)recorder.flush_now();
        return;
      case 4:
        (void)recorder.note_failure();
        return;
      default:
        EXPECT_TRUE(fork_is_quiet(recorder, source));
    }
  }

  const weir::testing::TemporaryDirectory folder_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> last_id_{0};
  std::atomic<std::uint64_t> threads_{0};
};

/// Each event at most once, as written.
void expect_whole(const std::vector<Written::One>& events) {
  std::set<std::uint64_t> seen;
  for (const auto& one : events) {
    if (one.record.kind == TimelineKind::kLive) continue;
    ASSERT_TRUE(seen.insert(one.record.id).second) << one.record.id;
    ASSERT_EQ(one.record.bytes, one.record.id * 3);
    ASSERT_TRUE(one.name.starts_with("thread ")) << one.name;
  }
}

/// In the order of time the window opens, closes, opens.
void expect_windows(const Written& written) {
  std::vector<TimelineRecord> marks;
  for (const TimelineKind kind : {TimelineKind::kStart, TimelineKind::kStop}) {
    for (const auto& one : written.of(kind)) marks.push_back(one.record);
  }
  std::ranges::sort(marks, {}, &TimelineRecord::begin);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    ASSERT_EQ(marks[i].kind, i % 2 == 0 ? TimelineKind::kStart : TimelineKind::kStop) << i;
  }
}

TEST_F(RecorderStress, NothingIsLostTwiceOrTorn) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  LockedSource source;
  const auto written = std::make_shared<Written>();
  RecorderOptions options;
  options.buffer = mib(1);
  options.every = std::chrono::milliseconds(1);
  options.by_signal = true;
  options.keeps_failures = true;
  RecorderOutput output = in_memory(written);
  output.file = TimelineFile::open("test", folder_.file("run.json"));  // failures lie beside it
  Recorder& recorder = Recorder::make({}, std::move(output), std::move(options));

  {
    const auto writers = in_threads(3, [&](std::uint64_t t) { write_in_threads(seed + t); });
    (void)in_threads(2, [&](std::uint64_t t) {
      std::mt19937_64 random(seed + 100 + t);
      for (int i = 0; i < kRounds; ++i) do_something(recorder, source, random);
    });
    stop_ = true;
  }
  const RecordingResult result = recorder.finish();

  const auto events = written->events();
  expect_whole(events);
  expect_windows(*written);
  const auto live = static_cast<std::uint64_t>(std::ranges::count(
      events, TimelineKind::kLive, [](const auto& one) { return one.record.kind; }));
  EXPECT_EQ(events.size() - live + result.lost, last_id_.load()) << threads_ << " threads";
  EXPECT_EQ(result.events, written->size());
  EXPECT_GT(events.size() - live, 0U);
  EXPECT_TRUE(std::filesystem::exists(folder_.file("run.oom.pftrace")));
}

}  // namespace
}  // namespace weir::timeline
