// The writer receives what threads write.

#include "tools/timeline/recorder/recorder.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <system_error>
#include <thread>

#include "kit.hpp"
#include "support/forked.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"

namespace weir::timeline {
namespace {

using weir::testing::random_seed;
using weir::testing::run_forked;
using weir::testing::seed_message;

TEST(Recorder, WhatFourThreadsWriteAtRandomIsWhatTheWriterGets) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 5000;
  std::map<std::uint64_t, TimelineRecord> sent;
  const Recording recording({.every = std::chrono::milliseconds(1)});
  const auto make = [](std::uint64_t id, std::mt19937_64& random) {
    TimelineRecord record;
    record.begin = 1 + random() % 1000;
    record.end = record.begin + random() % 1000;
    record.id = id;
    record.bytes = random();
    record.requested = random();
    record.stream = random();
    record.sequence = random();
    record.allocated = random();
    record.awaiting = random();
    record.cached = random();
    record.batch = 1 + static_cast<std::uint32_t>(random() % 100);
    record.site = 1 + static_cast<std::uint32_t>(random() % 100);
    record.source = static_cast<std::uint16_t>(random());
    record.device = static_cast<std::uint16_t>(random());
    record.kind =
        static_cast<TimelineKind>(random() % static_cast<unsigned>(TimelineKind::kStream));
    record.detail = static_cast<std::uint8_t>(random());
    return record;
  };
  (void)in_threads(kThreads, [&](std::uint64_t t) {
    std::mt19937_64 random(seed + t);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      recording->write(make(t * kEach + i, random));
      if (random() % 1000 == 0) (void)recording->flush_now();
    }
  });
  const RecordingResult result = recording->finish();
  const auto events = recording.written().events();
  ASSERT_EQ(events.size(), kThreads * kEach);
  EXPECT_EQ(result.events, recording.written().size());
  EXPECT_EQ(result.lost, 0U);
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    std::mt19937_64 random(seed + t);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      sent[t * kEach + i] = make(t * kEach + i, random);
      (void)random();
    }
  }
  std::map<std::uint64_t, std::uint32_t> threads_of;
  for (const auto& one : events) {
    TimelineRecord expected = sent.at(one.record.id);
    expected.thread = one.record.thread;
    expected.begin = one.record.begin;  // ticks became nanoseconds: see below
    expected.end = one.record.end;
    ASSERT_EQ(one.record, expected) << "id " << one.record.id;
    EXPECT_GT(one.record.thread, 0U);
    threads_of.try_emplace(one.record.id / kEach, one.record.thread);
    EXPECT_EQ(threads_of[one.record.id / kEach], one.record.thread);
  }
}

TEST(Recorder, TheRecordsOfOneCallAreInTheOrderOfTheirTimes) {
  const Recording recording;
  (void)in_threads(3, [&](std::uint64_t /*thread*/) {
    for (std::uint64_t id = 1; id <= 2000; ++id) recording->write(event(id));
  });
  (void)recording->flush_now();
  for (const auto& call : recording.written().calls()) {
    EXPECT_TRUE(std::ranges::is_sorted(call, {}, &TimelineRecord::begin));
  }
}

TEST(Recorder, RecordsOfAThreadWithTheSameTimeStayInTheirOrder) {
  const Recording recording;
  const std::uint64_t time = recording->now();
  for (std::uint64_t id = 1; id <= 100; ++id) {
    recording->write({.begin = time, .end = time, .id = id, .kind = TimelineKind::kFree});
  }
  (void)recording->flush_now();
  const std::vector<std::uint64_t> ids = recording.written().ids();
  ASSERT_EQ(ids.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
}

TEST(Recorder, TimesAreNanosecondsSinceItsZero) {
  const Recording recording;
  const auto steady = [] {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> around;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    const std::uint64_t before = steady();
    recording->write(event(id));
    around.emplace_back(before, steady());
  }
  (void)recording->flush_now();
  const std::uint64_t zero = recording.written().told().info.monotonic_ns;
  constexpr std::uint64_t kError = 1000;
  for (const auto& one : recording.written().events()) {
    const auto [before, after] = around[one.record.id - 1];
    EXPECT_GE(one.record.begin + zero + kError, before);
    EXPECT_LE(one.record.begin + zero, after + kError);
    EXPECT_EQ(one.record.end, one.record.begin);
  }
}

TEST(Recorder, ATimeOfTheSteadyClockIsATimeOfItsOwn) {
  const Recording recording;
  constexpr std::int64_t kAgo = 2'000'000;
  const auto zero = static_cast<std::int64_t>(recording.written().told().info.monotonic_ns);
  std::int64_t now = 0;
  while (now - zero <= kAgo) now = std::chrono::steady_clock::now().time_since_epoch().count();
  recording->write({.begin = recording->at(now - kAgo),
                    .end = recording->at(now),
                    .id = 1,
                    .kind = TimelineKind::kBarrier});
  (void)recording->flush_now();
  const auto events = recording.written().of(TimelineKind::kBarrier);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_NEAR(static_cast<double>(events[0].record.end - events[0].record.begin), kAgo, 5000);
  EXPECT_GT(recording->at(0), 0U);
}

TEST(Recorder, ASliceThatOnlyBeganEndsNowAndAnEventHasOneTime) {
  const Recording recording;
  const std::uint64_t began = recording->now();
  while (recording->now() - began < 10'000) continue;
  recording->write({.begin = began, .kind = TimelineKind::kSubmit});
  recording->write({.begin = began, .kind = TimelineKind::kAdmit});
  (void)recording->flush_now();
  const auto slice = recording.written().of(TimelineKind::kSubmit).at(0).record;
  const auto moment = recording.written().of(TimelineKind::kAdmit).at(0).record;
  EXPECT_GT(slice.end, slice.begin);
  EXPECT_EQ(moment.end, moment.begin);
  EXPECT_EQ(moment.begin, slice.begin);
}

TEST(Recorder, FillsInBatchAndSiteFromTheThreadsScope) {
  const Recording recording;
  {
    const TimelineScope scope(7, "loop.py", 88);
    recording->write(event(1));
    recording->write(
        {.id = 2, .batch = 9, .site = recording->site("other.py", 3), .kind = TimelineKind::kFree});
  }
  recording->write(event(3));
  (void)recording->flush_now();
  const auto events = recording.written().events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].record.batch, 7U);
  EXPECT_EQ(events[0].site, "loop.py:88");
  EXPECT_EQ(events[1].record.batch, 9U);
  EXPECT_EQ(events[1].site, "other.py:3");
  EXPECT_EQ(events[2].record.batch, 0U);
  EXPECT_EQ(events[2].site, "");
}

TEST(Recorder, NamesEachThreadThatWritesOnce) {
  const Recording recording;
  std::thread named([&] {
    pthread_setname_np(pthread_self(), "loader");
    for (std::uint64_t id = 1; id <= 2000; ++id) recording->write(event(id));  // several chunks
  });
  named.join();
  (void)recording->flush_now();
  std::vector<Written::One> loaders;
  for (const auto& one : recording.written().of(TimelineKind::kThread)) {
    if (one.name == "loader") loaders.push_back(one);
  }
  ASSERT_EQ(loaders.size(), 1U);
  EXPECT_EQ(loaders[0].record.thread, recording.written().events()[0].record.thread);
}

TEST(Recorder, AThreadThatEndsLeavesItsChunkToOthers) {
  const Recording recording({.buffer = mib(1)});  // sixteen chunks
  for (std::uint64_t t = 1; t <= 200; ++t) {
    std::thread([&] { recording->write(event(t)); }).join();
    if (t % 10 == 0) {
      ASSERT_TRUE(recording->flush_now());
    }
  }
  const RecordingResult result = recording->finish();
  EXPECT_EQ(result.lost, 0U);
  EXPECT_EQ(recording.written().events().size(), 200U);
}

/// Writes from the destructor of a thread-local, which may run after the recorder's own.
struct WritesAtTheEnd {
  Recorder* recorder = nullptr;
  ~WritesAtTheEnd() {
    if (recorder == nullptr) return;
    recorder->write(event(2));
    (void)recorder->name("from a destructor");
  }
};
thread_local WritesAtTheEnd writes_at_the_end;

TEST(Recorder, DestructorsOfThreadLocalsMayWrite) {
  const Recording recording({.buffer = mib(1)});
  constexpr std::uint64_t kThreads = 100;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    std::thread([&] {
      writes_at_the_end.recorder = &recording.recorder();
      recording->write(event(1));
    }).join();
    (void)recording->flush_now();
  }
  EXPECT_EQ(recording->finish().lost, 0U);
  EXPECT_EQ(recording.written().events().size(), 2 * kThreads);
}

TEST(Recorder, WhatThereIsNoRoomForIsCountedExactlyAndSaidInItsPlace) {
  // The writer waits until everything was written: the recorder's thread reads nothing meanwhile.
  std::atomic<bool> go{true};
  const Recording recording({.buffer = mib(1)}, [&] { go.wait(false); });
  (void)recording->flush_now();
  go.store(false);
  constexpr std::uint64_t kEvents = 50'000;
  (void)in_threads(2, [&](std::uint64_t /*thread*/) {
    for (std::uint64_t id = 0; id < kEvents / 2; ++id) recording->write(event(id));
  });
  go.store(true);
  go.notify_all();
  const RecordingResult result = recording->finish();
  const std::uint64_t arrived = recording.written().events().size();
  EXPECT_LT(arrived, kEvents);
  EXPECT_EQ(result.lost, kEvents - arrived);
  EXPECT_EQ(recording.written().told().lost, result.lost);
  std::uint64_t said = 0;
  for (const auto& one : recording.written().of(TimelineKind::kLost)) {
    said += one.record.bytes;
    EXPECT_EQ(one.name, "no room in the buffer");
    EXPECT_GT(one.record.begin, recording.written().events().front().record.begin);
  }
  EXPECT_EQ(said, result.lost);
}

TEST(Recorder, AForkedChildRecordsNothingAndEndsAtOnce) {
  const Recording recording;
  recording->write(event(1));
  const auto record_in_a_child = [&] {
    const bool is_silent = timeline_sink() == nullptr && timeline_batches() == nullptr &&
                           !recording->flush_now() && recording->name("x") == 0;
    recording->write(event(2));
    for (std::uint64_t id = 0; id < 5000; ++id) recording->write(event(100 + id));
    recording->start();
    const RecordingResult result = recording->finish();
    return is_silent && result.file.empty() && timeline_sink() == nullptr ? 0 : 1;
  };
  EXPECT_EQ(run_forked(record_in_a_child), 0);
  recording->write(event(3));
  (void)recording->flush_now();
  const auto events = recording.written().events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].record.id, 3U);
}

// A program may use all thread keys itself: without one of our own we set nobody else's.
TEST(RecorderDeathTest, WithoutAKeyOfThreadsItRefusesAndSetsNoneOfTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // no recorder was made in that process
  const auto make_one = [] {
    pthread_key_t last = 0;
    while (pthread_key_create(&last, nullptr) == 0) continue;
    constexpr pthread_key_t kFirst = 0;
    const void* const before = pthread_getspecific(kFirst);
    bool refused = false;
    try {
      (void)Recorder::make({}, in_memory(std::make_shared<Written>()));
    } catch (const std::system_error&) {
      refused = true;
    }
    _exit(refused && pthread_getspecific(kFirst) == before ? 0 : 1);
  };
  EXPECT_EXIT(make_one(), ::testing::ExitedWithCode(0), "");
}

TEST(Recorder, TwoAtATimeEachGetTheirOwn) {
  const Recording first;
  const Recording second;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    first->write(event(id));
    second->write(event(1000 + id));
  }
  EXPECT_EQ(first->finish().lost + second->finish().lost, 0U);
  EXPECT_EQ(first.written().events().size(), 100U);
  for (const auto& one : second.written().events()) EXPECT_GT(one.record.id, 1000U);
}

TEST(Recorder, MayBeFinishedTwiceAndByTwoThreads) {
  const Recording recording;
  recording->write(event(1));
  (void)in_threads(2, [&](std::uint64_t /*thread*/) { EXPECT_EQ(recording->finish().lost, 0U); });
  EXPECT_EQ(recording->finish().events, recording.written().size());
  EXPECT_EQ(recording.written().told().finished, 1);
  EXPECT_EQ(recording.written().events().size(), 1U);
}

// Each event without room requests some.
TEST(Recorder, ThreadsThatFindNoRoomDoNotKeepItFromItsWork) {
  const Recording recording({.buffer = mib(1), .patience = std::chrono::minutes(5)});
  std::atomic<bool> stop{false};
  const auto threads = in_threads(8, [&](std::uint64_t /*thread*/) {
    while (!stop) recording->write(event(1));
  });
  constexpr int kFlushes = WEIR_TEST_SANITIZED != 0 ? 5 : 20;
  for (int i = 0; i < kFlushes; ++i) EXPECT_TRUE(recording->flush_now());
  stop = true;
}

TEST(Recorder, MayBeFinishedWhileThreadsWrite) {
  for (int round = 0; round < 5; ++round) {
    const Recording recording({.buffer = mib(1)});
    std::atomic<bool> stop{false};
    std::atomic<int> began{0};
    auto threads = in_threads(3, [&](std::uint64_t /*thread*/) {
      for (std::uint64_t id = 0; !stop; ++id) {
        if (TimelineSink* const sink = timeline_sink()) sink->write(event(id));
        recording->write(event(id));
        if (id == 100) ++began;
      }
    });
    while (began < 3) std::this_thread::yield();
    (void)recording->finish();
    EXPECT_EQ(timeline_sink(), nullptr);
    stop = true;
    threads.clear();
    EXPECT_EQ(recording.written().told().finished, 1);
  }
}

}  // namespace
}  // namespace weir::timeline
