// The thread that publishes, in one process and in several.

#include "tools/timeline/live/publisher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <thread>

#include "allocator/timeline/source.hpp"
#include "live_support.hpp"
#include "support/environment.hpp"
#include "support/log_capture.hpp"
#include "support/sanitized.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using weir::testing::environment_of;
using weir::testing::LogCapture;

/// A source with figures known to the test.
class FakeSource final : public TimelineSource {
 public:
  FakeSource() { enlist(); }
  ~FakeSource() override { leave(); }
  void add_figures(LiveFigures& figures) const override {
    figures.budget += kib(8);
    figures.reserved += kib(4);
    figures.allocated += kib(1);
    figures.settled += 1 + asked_.fetch_add(1);
    figures.knows_busy = true;
    figures.busy += std::chrono::nanoseconds(5);
  }
  void record_live(TimelineSink& /*sink*/) override {}

 private:
  mutable std::atomic<std::uint64_t> asked_{0};
};

PublishSetting in(const Place& place) { return {.on = true, .folder = place.path()}; }

/// In every thread's stack, as the objects of a large program. It would fill one of 256 KiB.
thread_local std::array<char, 240U << 10U> large_thread_local{};

TEST(LivePublisher, HasAStackBesideLargeThreadLocalObjects) {
  const Place place;
  const FakeSource source;
  EXPECT_EQ(
      run_forked([&] {
        large_thread_local.back() = 1;  // so that it is there
        Publisher publisher({.folders = place.folders(), .program = "large", .period = kShort});
        publisher.start();
        return publisher.wait_for_samples(1) ? 0 : 1;
      }),
      0);
}

TEST(LivePublisher, PublishesTheSumOfAllSources) {
  const Place place;
  const FakeSource first;
  const FakeSource second;
  Publisher publisher({.folders = place.folders(), .program = "sums", .period = kShort});
  publisher.add_device("cpu");
  publisher.start();
  ASSERT_TRUE(publisher.wait_for_samples(3));
  const LiveProgram program = place.survey().programs.at(0);
  EXPECT_EQ(program.program, "sums");
  EXPECT_THAT(program.devices, ElementsAre("cpu"));
  ASSERT_GE(program.samples.size(), 3U);
  const LiveSample& sample = program.samples.back();
  EXPECT_EQ(sample.budget, kib(16).count);
  EXPECT_EQ(sample.reserved, kib(8).count);
  EXPECT_EQ(sample.allocated, kib(2).count);
  EXPECT_EQ(sample.knows_busy, 1U);
  EXPECT_EQ(sample.busy_ns, 10U);
  EXPECT_LT(program.samples.front().settled, sample.settled);
}

TEST(LivePublisher, NamesADeviceThatComesLater) {
  const Place place;
  Publisher publisher({.folders = place.folders(), .program = "late", .period = kShort});
  publisher.start();
  ASSERT_TRUE(publisher.wait_for_samples(1));
  publisher.add_device("cuda:1");
  for (std::uint64_t i = 2; i < 5000 && place.survey().programs.at(0).devices.empty(); ++i) {
    ASSERT_TRUE(publisher.wait_for_samples(i));
  }
  EXPECT_THAT(place.survey().programs.at(0).devices, ElementsAre("cuda:1"));
}

TEST(LivePublisher, NamesADeviceOnceThoughItIsToldAgain) {
  const Place place;
  Publisher publisher({.folders = place.folders(), .program = "twice", .period = kShort});
  for (const char* name : {"GPU 0", "GPU 1", "GPU 0"}) publisher.add_device(name);
  publisher.start();
  ASSERT_TRUE(publisher.wait_for_samples(1));
  EXPECT_THAT(place.survey().programs.at(0).devices, ElementsAre("GPU 0", "GPU 1"));
}

TEST(LivePublisher, IsGoneAfterItsStop) {
  const Place place;
  Publisher publisher({.folders = place.folders(), .program = {}, .period = kShort});
  publisher.start();
  ASSERT_TRUE(publisher.wait_for_samples(1));
  EXPECT_EQ(place.files(), 1U);
  publisher.stop();
  publisher.stop();
  EXPECT_EQ(place.files(), 0U);
  publisher.start();
  EXPECT_EQ(place.files(), 0U);
}

TEST(LivePublisher, ThatWasNeverStartedEndsAtOnce) {
  const Place place;
  { const Publisher publisher({.folders = place.folders(), .program = {}}); }
  EXPECT_EQ(place.files(), 0U);
}

TEST(LivePublisher, WithoutAFolderTheProgramGoesOnAndOnlyDebugSaysSo) {
  const LogCapture log;
  set_log_level(LogLevel::kDebug);
  Publisher publisher({.folders = {{"/proc/none/weir", {}}}, .program = {}});
  publisher.start();
  EXPECT_FALSE(publisher.wait_for_samples(1));
  set_log_level(LogLevel::kWarn);
  EXPECT_THAT(log.containing("weir top will not show this process"), SizeIs(1));
  EXPECT_THAT(log.containing("/proc/none/weir: open: No such file"), SizeIs(1));
}

TEST(LivePublisher, AFullDiskSendsTheProgramNoSignal) {
  const Place place;
  const int code = run_forked([&place] {
    const rlimit small{.rlim_cur = 4096, .rlim_max = 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    (void)std::signal(SIGXFSZ, SIG_DFL);
    Publisher publisher({.folders = place.folders(), .program = {}});
    publisher.start();
    return publisher.wait_for_samples(1) ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(place.files(), 0U);
}

TEST(LivePublisher, TheThreadTakesNoSignalOfTheProgram) {
  const Place place;
  const int code = run_forked([&place] {
    static std::atomic<bool> elsewhere{false};
    static pthread_t program_thread;
    program_thread = pthread_self();
    (void)std::signal(SIGUSR1, [](int) {
      if (pthread_equal(pthread_self(), program_thread) == 0) elsewhere = true;
    });
    Publisher publisher({.folders = place.folders(), .program = {}, .period = kShort});
    publisher.start();
    if (!publisher.wait_for_samples(1)) return 1;
    sigset_t usual;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    // Blocked here, the signal would go to any other thread that accepts it.
    pthread_sigmask(SIG_BLOCK, &set, &usual);
    kill(getpid(), SIGUSR1);
    (void)publisher.wait_for_samples(5);
    pthread_sigmask(SIG_SETMASK, &usual, nullptr);
    return elsewhere ? 2 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(LivePublisher, AChildLeavesItsParentsBlockAlone) {
  const Place place;
  Publisher publisher({.folders = place.folders(), .program = {}, .period = kShort});
  publisher.start();
  ASSERT_TRUE(publisher.wait_for_samples(1));
  EXPECT_EQ(run_forked([&publisher] {
              publisher.stop();
              return 0;
            }),
            0);
  EXPECT_THAT(place.survey().programs, SizeIs(1));
}

/// Holds the locks of a sample until a fork begins, and a little longer.
class SlowSource final : public TimelineSource {
 public:
  SlowSource() { enlist(); }
  ~SlowSource() override { leave(); }
  void add_figures(LiveFigures& /*figures*/) const override {
    inside = true;
    while (!fork_begins) std::this_thread::yield();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  void record_live(TimelineSink& /*sink*/) override {}

  static inline std::atomic<bool> inside{false};
  static inline std::atomic<bool> fork_begins{false};
};

TEST(LivePublisher, AForkMeetsNoSampleUnderWay) {
  const Place place;
  const int code = run_forked([&place] {
    const SlowSource source;
    Publisher publisher({.folders = place.folders(), .program = {}, .period = kShort});
    publisher.start();
    // Registered after the publisher's own, so it runs before it.
    pthread_atfork([] { SlowSource::fork_begins = true; }, nullptr, nullptr);
    while (!SlowSource::inside) std::this_thread::yield();
    return run_forked([] {
      for_each_source([](const TimelineSource&) {});  // its lock is free here
      return 0;
    });
  });
  EXPECT_EQ(code, 0);
}

TEST(LivePublisher, OfTheProcessBeginsOnceAndRemovesItsBlockAtExit) {
  const Place place;
  const int code = run_forked([&] {
    const Environment none = environment_of({});
    Publisher* const own = Publisher::begin(in(place), none);
    bool good = own != nullptr && own->wait_for_samples(2);
    good = good && Publisher::begin(in(place), none) == own;
    good = good && place.survey().programs.size() == 1;
    good = good && place.survey().programs[0].pid == static_cast<std::uint32_t>(getpid());
    good = good && place.survey().programs[0].program.starts_with("timeline_live_test");
    std::exit(good ? 0 : 1);  // NOLINT(concurrency-mt-unsafe): this thread alone is the program's
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(place.files(), 0U);
}

TEST(LivePublisher, BeginsOnceThoughManyThreadsBegin) {
  const Place place;
  const int code = run_forked([&place] {
    const Environment none = environment_of({});
    std::array<Publisher*, 8> found{};
    {
      std::vector<std::jthread> threads;
      for (Publisher*& each : found) {
        threads.emplace_back([&] { each = Publisher::begin(in(place), none); });
      }
    }
    for (const Publisher* each : found) {
      if (each == nullptr || each != found[0]) return 1;
    }
    if (!found[0]->wait_for_samples(1)) return 2;
    const bool one = place.files() == 1;
    Publisher::end();
    return one ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(place.files(), 0U);
}

TEST(LivePublisher, AChildThatBeginsPublishesItsOwn) {
#if WEIR_TEST_THREAD_SANITIZED
  GTEST_SKIP() << "the thread sanitizer lets no child of a process with threads make one";
#endif
  const Place place;
  const int code = run_forked([&place] {
    const Environment none = environment_of({});
    Publisher* const own = Publisher::begin(in(place), none);
    if (own == nullptr || !own->wait_for_samples(1)) return 1;
    const int inner = run_forked([&] {
      if (place.survey().programs.size() != 1) return 2;
      Publisher* const second = Publisher::begin(in(place), none);
      if (second == nullptr || second == own || !second->wait_for_samples(1)) return 3;
      if (place.survey().programs.size() != 2) return 4;
      Publisher::end();
      return place.survey().programs.size() == 1 ? 0 : 5;
    });
    if (inner != 0) return inner;
    Publisher::end();
    return place.files() == 0 ? 0 : 6;
  });
  EXPECT_EQ(code, 0);
}

TEST(LivePublisher, TurnedOffItDoesNothing) {
  const Place place;
  EXPECT_EQ(Publisher::begin({.on = false, .folder = place.path()}, environment_of({})), nullptr);
  EXPECT_EQ(place.files(), 0U);
}

}  // namespace
}  // namespace weir::timeline::testing
