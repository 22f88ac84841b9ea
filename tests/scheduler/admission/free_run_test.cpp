// What holding a frontend back has cost, against a small device that runs the same batches twice:
// as it was, and as if nobody had been held back.

#include "scheduler/admission/free_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/random_seed.hpp"

namespace weir {
namespace {

using Span = FreeRun::Duration;

constexpr StreamRole kCompute = StreamRole::kCompute;
constexpr StreamRole kOther = StreamRole::kCompute2;
constexpr StreamRole kCopy = StreamRole::kCopyIn;

/// A task of a batch, which waits for the batch's tasks before it.
struct Part {
  StreamRole role;
  int takes = 0;
  int own_gap = 0;  ///< that the device needs to begin it
};

/// Streams that run in order.
class SmallDevice {
 public:
  /// Runs a batch that is enqueued at `now`, and returns what it did.
  BatchRun run(Span now, const std::vector<Part>& batch) {
    BatchRun run{};
    Span ready = now;
    for (const Part& part : batch) {
      Span& ended = ended_.at(index_of(part.role));
      const Span begun = std::max(ready, ended) + Span(part.own_gap);
      ready = begun + Span(part.takes);
      run.at(index_of(part.role)) = {.device_time = Span(part.takes),
                                     .gap = begun - ended,
                                     .starved = std::max(now - ended, Span{}),
                                     .begun = begun,
                                     .ended = ready};
      ended = ready;
    }
    return run;
  }
  [[nodiscard]] Span end() const { return std::ranges::max(ended_); }

 private:
  std::array<Span, kStreamRoles> ended_{};
};

/// One frontend that enqueues batch after batch.
class Frontend {
 public:
  /// It needs `host` for the batch, and was held back for so long before.
  void batch(int held_back, int host, const std::vector<Part>& parts) {
    held_back_ += Span(held_back);
    free_now_ += Span(host);
    const Span credit = run_.note_held_back(Span(held_back));
    const Span before = run_.lost();
    const Span newly = run_.note_settled(device_.run(free_now_ + held_back_, parts), credit);
    EXPECT_EQ(run_.lost() - before, newly);
    (void)freely_.run(free_now_, parts);
    late_ = std::max(late_, device_.end() - freely_.end());
  }
  /// It waits until the device has run everything, as a free run would have, too.
  void synchronize() {
    if (free_now_ + held_back_ >= device_.end()) return;
    free_now_ = std::max(free_now_, freely_.end());
    held_back_ = device_.end() - free_now_;
    run_.note_synchronized();
  }
  [[nodiscard]] std::int64_t lost() const {
    EXPECT_EQ(run_.lost(), late_) << "what the replay says";
    return run_.lost().count();
  }

 private:
  FreeRun run_;
  SmallDevice device_;
  SmallDevice freely_;
  Span free_now_{};   ///< where nobody is held back
  Span held_back_{};  ///< how much later it really is
  Span late_{};       ///< the most that the device was behind the free one
};

TEST(FreeRun, OneStreamLosesItsIdleTimeAsFarAsTheHostWasHeldBack) {
  Frontend host;
  host.batch(0, 0, {{kCompute, 2}});
  host.batch(1, 0, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 0) << "held back while the device was busy";
  host.batch(6, 0, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 3) << "idle from 4 to 7";
  host.batch(0, 4, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 5) << "idle from 9 to 11, and 7 were held back";
  host.batch(0, 9, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 7) << "no more than that: the rest was the host's own";
  host.batch(1, 9, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 8);
}

TEST(FreeRun, AHostThatIsNeverHeldBackLosesNothingHoweverIdleTheDevice) {
  Frontend host;
  for (int i = 0; i < 100; ++i) host.batch(0, 50, {{kCopy, 1}, {kCompute, 1 + i % 3}});
  EXPECT_EQ(host.lost(), 0);
}

TEST(FreeRun, AStreamThatIsIdleWhileTheNextIsTheBottleneckLosesNothing) {
  Frontend host;
  host.batch(0, 0, {{kCopy, 1}, {kCompute, 10}});
  for (int i = 0; i < 50; ++i) host.batch(8, 2, {{kCopy, 1}, {kCompute, 10}});
  EXPECT_EQ(host.lost(), 0);
}

TEST(FreeRun, StreamsThatTakeTurnsBothCount) {
  Frontend host;
  for (int i = 0; i < 10; ++i) host.batch(i < 2 ? 0 : 5, 0, {{i % 2 == 0 ? kCompute : kOther, 2}});
  EXPECT_EQ(host.lost(), 32) << "done at 42, and freely both at 10";
}

TEST(FreeRun, ACopyThatWeHeldBackDelaysTheCompute) {
  Frontend host;
  host.batch(0, 0, {{kCopy, 4}, {kCompute, 5}});
  host.batch(7, 0, {{kCopy, 4}, {kCompute, 5}});
  EXPECT_EQ(host.lost(), 2) << "copied at 11, and the compute stood from 9 on";
}

TEST(FreeRun, ComputesThatWaitForCopiesWithoutAPauseLoseNothing) {
  Frontend host;
  for (int i = 0; i < 50; ++i) host.batch(i == 0 ? 0 : 4, 0, {{kCopy, 5}, {kCompute, 2}});
  EXPECT_EQ(host.lost(), 0);
}

TEST(FreeRun, TheDevicesOwnGapsBetweenReadyTasksAreNotOurs) {
  Frontend host;
  for (int i = 0; i < 50; ++i) host.batch(i == 0 ? 0 : 4, 0, {{kCompute, 2, 3}});
  EXPECT_EQ(host.lost(), 0);
}

/// What a batch did on a stream that had nothing to run for `idle` until `begun`.
StreamRun run_of(int idle, int begun, int takes) {
  return {.device_time = Span(takes),
          .gap = Span(idle),
          .starved = Span(idle),
          .begun = Span(begun),
          .ended = Span(begun + takes)};
}

TEST(FreeRun, NoBatchWaitsForACopyToTheHost) {
  FreeRun run;
  BatchRun read{};
  read.at(index_of(StreamRole::kCopyOut)) = run_of(9, 9, 2);
  EXPECT_EQ(run.note_settled(read, run.note_held_back(Span(10))), Span{});
}

TEST(FreeRun, APauseWithinABatchCountsLikeOneBeforeIt) {
  FreeRun run;
  BatchRun batch{};
  batch.at(0) = {.device_time = Span(4), .starved = Span(3), .ended = Span(7)};
  EXPECT_EQ(run.note_settled(batch, run.note_held_back(Span(10))), Span(3));
}

TEST(FreeRun, AStreamThatRunsBesideAnotherDoesNotWaitForIt) {
  FreeRun run;
  const Span credit = run.note_held_back(Span(10));
  BatchRun batch{run_of(0, 0, 10), run_of(5, 5, 1)};
  EXPECT_EQ(run.note_settled(batch, credit), Span{}) << "it was not the last";
  batch = {StreamRun{}, run_of(0, 6, 20)};
  EXPECT_EQ(run.note_settled(batch, credit), Span(5));
}

TEST(FreeRun, AStallAfterABatchWasAdmittedIsNotToBlameForItsGap) {
  FreeRun run;
  const Span before = run.note_held_back({});
  (void)run.note_held_back(Span(9));
  EXPECT_EQ(run.note_settled({run_of(5, 5, 1)}, before), Span{});
}

TEST(FreeRun, StallsBeforeAFrontendWaitedForTheDeviceItselfCostNothing) {
  Frontend host;
  host.batch(0, 0, {{kCompute, 20}});
  host.batch(5, 0, {{kCompute, 2}});
  host.synchronize();
  host.batch(0, 30, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 0) << "a free run would have waited until then, too";
  host.batch(7, 0, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 5);
  host.synchronize();
  host.batch(0, 30, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 5) << "what was lost stays lost, once";
  host.batch(7, 0, {{kCompute, 2}});
  EXPECT_EQ(host.lost(), 10) << "and more is added to it";
}

// Streams in order, and batches whose tasks wait only for their own earlier ones.
TEST(FreeRun, LosesWhatAReplayWithoutStallsGainsInEveryRandomRun) {
  constexpr std::array kRoles{kCompute, kOther, kCopy};
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t seed = testing::random_seed() + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(testing::seed_message(seed));
    std::minstd_rand random(seed);
    const auto below = [&random](int n) {
      return static_cast<int>(random() % static_cast<unsigned>(n));
    };
    const std::array most{1 + below(9), 1 + below(9), 1 + below(9)};
    const int most_host = 1 + below(12);
    Frontend host;
    for (int n = 0; n < 60; ++n) {
      std::array<std::size_t, 3> order{0, 1, 2};
      std::ranges::shuffle(order, random);
      std::vector<Part> parts;
      for (const std::size_t which : order) {
        if (below(2) == 0) continue;
        parts.push_back({kRoles.at(which), 1 + below(most.at(which)), below(5) / 4});
      }
      host.batch(below(3) == 0 ? below(15) : 0, below(most_host), parts);
      (void)host.lost();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace weir
