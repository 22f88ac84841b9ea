// The charges of batches and what is learned from them, without a device or a clock. One long file,
// because every case changes the same ledger by the same few calls.

#include "scheduler/admission/ledger.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/print.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using Passed = std::array<std::uint64_t, kStreamRoles>;
using testing::random_seed;
using testing::seed_message;

constexpr StreamRole kStream = StreamRole::kCompute;

class LedgerTest : public ::testing::Test {
 protected:
  Ticket& open(Bytes estimate, std::string_view kind = "train") {
    return ledger.open(ledger.kind(kind), estimate);
  }
  static TicketRef ref(Ticket& ticket) { return {&ticket, ticket.serial}; }
  /// Closes a batch that used one stream, at `point`.
  void close(Ticket& ticket, std::uint64_t point, bool learn = true) {
    ticket.touched = {true};
    std::array<Point, kStreamRoles> points{};
    points.at(0) = {stream, point};
    ledger.close(ticket, points, learn);
  }
  struct Course {
    std::string_view kind = "train";
    Bytes keeps{};  ///< beside its peak, and for ever
    bool learn = true;
    std::int64_t device_time = 0;
  };
  /// Runs a batch from begin to end, which frees `peak`.
  void run(Bytes peak, const Course& course) {
    Ticket& ticket = open({}, course.kind);
    ledger.note_allocated(ref(ticket), course.keeps);
    ledger.note_allocated(ref(ticket), peak);
    ledger.note_freed(ref(ticket), peak, false);
    ticket.device_time.at(index_of(kStream)) += course.device_time;
    close(ticket, ++sequence, course.learn);
    ASSERT_EQ(ledger.settle({sequence}), 1U);
  }
  void run(Bytes peak) { run(peak, Course{}); }
  /// The same, but its memory stays held.
  TicketRef run_and_hold(Bytes peak) {
    Ticket& ticket = open({});
    ledger.note_allocated(ref(ticket), peak);
    close(ticket, ++sequence);
    EXPECT_EQ(ledger.settle({sequence}), 1U);
    return ref(ticket);
  }
  [[nodiscard]] Bytes footprint() { return ledger.kind("train").footprint.value_or(Bytes{}); }

  Ledger ledger;
  const StreamId stream = StreamId::next();
  std::uint64_t sequence = 0;
};

TEST_F(LedgerTest, AnOpenBatchIsChargedItsEstimateUntilItOutgrowsIt) {
  Ticket& ticket = open(mib(4));
  EXPECT_EQ(ledger.charged(), mib(4));
  EXPECT_EQ(ledger.unspent(), mib(4));
  ledger.note_allocated(ref(ticket), mib(3));
  EXPECT_EQ(ledger.charged(), mib(4));
  EXPECT_EQ(ledger.unspent(), mib(1));
  ledger.note_allocated(ref(ticket), mib(3));
  EXPECT_EQ(ledger.charged(), mib(6));
  EXPECT_EQ(ledger.unspent(), Bytes{}) << "never below zero";
}

TEST_F(LedgerTest, WhatIsFreedIntoTheCacheCanBeTakenAgain) {
  Ticket& ticket = open(mib(4));
  ledger.note_allocated(ref(ticket), mib(3));
  ledger.note_freed(ref(ticket), mib(2), false);
  EXPECT_EQ(ledger.unspent(), mib(3));
  EXPECT_EQ(ticket.peak, mib(3));
}

TEST_F(LedgerTest, ASubmittedBatchIsChargedWhatItLeftAwaiting) {
  Ticket& ticket = open(mib(4));
  ledger.note_allocated(ref(ticket), mib(4));
  ledger.note_freed(ref(ticket), mib(1), true);
  EXPECT_EQ(ledger.charged(), mib(4));
  close(ticket, 7);
  EXPECT_EQ(ledger.charged(), mib(1));
  EXPECT_EQ(ledger.unspent(), Bytes{});
}

TEST_F(LedgerTest, ChargesAreSettledExactlyOnceAndTheSumIsZeroAfterwards) {
  Ticket& a = open(mib(4));
  Ticket& b = open(mib(2));
  ledger.note_allocated(ref(a), mib(1));
  ledger.note_freed(ref(a), mib(1), true);
  close(a, 5);
  close(b, 6);
  EXPECT_EQ(ledger.settle({4}), 0U);
  EXPECT_EQ(ledger.settle({5}), 1U);
  EXPECT_EQ(ledger.settle({5}), 0U);
  EXPECT_EQ(ledger.settle({9}), 1U);
  EXPECT_EQ(ledger.settle({9}), 0U);
  EXPECT_EQ(ledger.settled(), 2U);
  EXPECT_EQ(ledger.charged(), Bytes{});
}

TEST_F(LedgerTest, ABatchIsSettledOnlyWhenEveryStreamItTouchedIsPast) {
  Ticket& ticket = open(mib(1));
  ticket.touched = {true, false, true, false};
  std::array<Point, kStreamRoles> points{};
  points.at(0) = {stream, 3};
  points.at(2) = {StreamId::next(), 8};
  ledger.close(ticket, points, true);
  EXPECT_EQ(ledger.settle({3, 0, 7, 0}), 0U);
  EXPECT_EQ(ledger.point_to_await({3, 0, 7, 0})->sequence, 8U);
  EXPECT_EQ(ledger.settle({3, 0, 8, 0}), 1U);
  EXPECT_FALSE(ledger.point_to_await({3, 0, 8, 0}).has_value());
}

TEST_F(LedgerTest, ABatchThatTouchedNothingIsSettledAtOnce) {
  Ticket& ticket = open(mib(1));
  ledger.close(ticket, {}, true);
  EXPECT_EQ(ledger.settle({}), 1U);
}

TEST_F(LedgerTest, AStaleReferenceIsIgnored) {
  Ticket& ticket = open(mib(1));
  const TicketRef old = ref(ticket);
  close(ticket, 1);
  EXPECT_FALSE(ledger.is_open(old));
  ledger.note_allocated(old, mib(8));
  ledger.note_freed(old, mib(8), true);
  EXPECT_EQ(ledger.charged(), Bytes{});
  ledger.settle({1});
  close(open(mib(1)), 2);  // only now is the first ticket not needed to learn from
  ledger.settle({2});
  Ticket& next = open(mib(2));
  ASSERT_EQ(&next, &ticket) << "tickets are used again";
  ledger.note_allocated(old, mib(8));
  ledger.note_freed(old, mib(8), true);
  EXPECT_EQ(ledger.charged(), mib(2));
  EXPECT_FALSE(ledger.is_open(old));
  EXPECT_TRUE(ledger.is_open(ref(next)));
  EXPECT_FALSE(ledger.is_open({}));
}

TEST_F(LedgerTest, TheFirstPeakIsTheEstimateAndALargerOneCountsAtOnce) {
  BatchKind& kind = ledger.kind("train");
  EXPECT_FALSE(kind.footprint.has_value());
  run(mib(4));
  EXPECT_EQ(kind.footprint, mib(4));
  run(mib(16));
  EXPECT_EQ(kind.footprint, mib(16));
}

TEST_F(LedgerTest, ASmallerPeakCountsSlowlyAndInTheEnd) {
  run(mib(16));
  run(mib(4));
  BatchKind& kind = ledger.kind("train");
  EXPECT_LT(*kind.footprint, mib(16));
  EXPECT_GT(*kind.footprint, mib(15));
  for (int i = 0; i < 300; ++i) run(mib(4));
  EXPECT_LE(*kind.footprint, mib(4) + Bytes{16});
  EXPECT_GE(*kind.footprint, mib(4));
}

TEST_F(LedgerTest, ThePeakIsNeitherTheSumOfAllNorOfWhatAwaitsTheDevice) {
  Ticket& ticket = open({});
  for (int i = 0; i < 40; ++i) {
    ledger.note_allocated(ref(ticket), mib(2));
    ledger.note_freed(ref(ticket), mib(2), i % 2 == 0);
  }
  EXPECT_EQ(ticket.net, Bytes{});
  close(ticket, 1);
  EXPECT_EQ(ledger.charged(mib(10)), mib(10)) << "no more than awaits the device now";
  ledger.settle({1});
  EXPECT_EQ(footprint(), mib(2));
}

TEST_F(LedgerTest, StateThatTheFirstBatchMakesIsForgottenWithTheSecond) {
  run(mib(4), {.keeps = mib(32)});
  EXPECT_EQ(footprint(), mib(36)) << "it might be double buffers";
  run(mib(4));
  EXPECT_EQ(footprint(), mib(4));
  run(mib(4));
  EXPECT_EQ(footprint(), mib(4));
}

TEST_F(LedgerTest, StateThatALaterBatchMakesIsForgottenWithTheNext) {
  for (int i = 0; i < 5; ++i) run(mib(4));
  run(mib(4), {.keeps = mib(32)});
  run(mib(4));
  EXPECT_EQ(footprint(), mib(4));
}

TEST_F(LedgerTest, ACacheThatGrowsWithEveryBatchIsExpectedToGrow) {
  for (int i = 0; i < 5; ++i) {
    run(mib(4), {.keeps = mib(2)});
    EXPECT_EQ(footprint(), mib(6));
  }
}

TEST_F(LedgerTest, WhatTheNextBatchFreesWasGivenBack) {
  TicketRef last = run_and_hold(mib(16));
  EXPECT_EQ(footprint(), mib(16));
  for (int i = 0; i < 10; ++i) {
    const Bytes size = i % 2 == 0 ? mib(1) : mib(16);  // of all sizes the largest is expected
    Ticket& ticket = open({});
    ledger.note_allocated(ref(ticket), size);
    ledger.note_freed(last, i % 2 == 0 ? mib(16) : mib(1), true);
    close(ticket, ++sequence);
    last = ref(ticket);
    ledger.settle({sequence});
    EXPECT_GE(footprint(), mib(15)) << "after " << i;
    EXPECT_LE(footprint(), mib(16)) << "after " << i;
  }
}

TEST_F(LedgerTest, AFreeAfterTheEndChangesNoChargeAndNoPeak) {
  Ticket& ticket = open(mib(4));
  ledger.note_allocated(ref(ticket), mib(4));
  close(ticket, 1);
  ledger.note_freed(ref(ticket), mib(1), true);
  EXPECT_EQ(ledger.charged(), Bytes{}) << "it was live memory by then";
  ledger.settle({1});
  ledger.note_freed(ref(ticket), mib(3), false);
  ledger.note_freed(ref(ticket), mib(1), false);
  EXPECT_EQ(ledger.charged(), Bytes{});
  EXPECT_EQ(footprint(), mib(4));
}

TEST_F(LedgerTest, AHintIsBelievedUntilABatchOfTheKindHasEnded) {
  BatchKind& kind = ledger.kind("train");
  EXPECT_EQ(ledger.expected(kind, mib(10)), mib(10));
  run(mib(1));
  EXPECT_EQ(ledger.expected(kind, mib(10)), mib(1));
}

TEST_F(LedgerTest, AKindThatIsNotKnownIsExpectedToBeAsLargeAsTheLargest) {
  EXPECT_EQ(ledger.expected(ledger.kind("new"), {}), std::nullopt);
  run(mib(1), {.kind = "small"});
  EXPECT_EQ(ledger.expected(ledger.kind("new"), {}), mib(1));
  run(mib(8), {.kind = "large"});
  run(mib(1), {.kind = "small"});
  EXPECT_EQ(ledger.expected(ledger.kind("new"), {}), mib(8));
  EXPECT_EQ(ledger.expected(ledger.kind("new"), mib(2)), mib(2)) << "a hint is of this kind";
  EXPECT_EQ(ledger.expected(ledger.kind("small"), {}), mib(1));
}

TEST_F(LedgerTest, WhatTheOnlyBatchOfAKindKeptIsNotExpectedOfOtherKinds) {
  run({}, {.kind = "init", .keeps = mib(32)});
  EXPECT_EQ(ledger.expected(ledger.kind("new"), {}), std::nullopt);
  run(mib(2), {.kind = "warm-up", .keeps = mib(32)});
  EXPECT_EQ(ledger.expected(ledger.kind("new"), {}), mib(2));
}

TEST_F(LedgerTest, AnAbandonedBatchTeachesNothing) {
  run(mib(8), {.learn = false, .device_time = 1'000'000});
  EXPECT_FALSE(ledger.kind("train").footprint.has_value());
  run(mib(2), {.device_time = 1'000});
  run(mib(8), {.learn = false, .device_time = 1'000'000});
  EXPECT_EQ(ledger.kind("train").footprint, mib(2));
  EXPECT_EQ(ledger.kind("train").device_time.front(), std::chrono::nanoseconds(1'000));
}

TEST_F(LedgerTest, QueuedBehindIsWhatTheBatchesBehindTheRunningOneAreExpectedToTake) {
  run(mib(1), {.device_time = 5'000});
  Ticket& a = open({});
  Ticket& b = open({});
  Ticket& c = open({});
  EXPECT_EQ(ledger.queued_behind().count(), 0) << "open batches are not queued";
  a.device_time.front() = 5'000;
  close(a, sequence + 1);
  EXPECT_EQ(ledger.queued_behind().count(), 0) << "nor is what runs";
  close(b, sequence + 2);
  close(c, sequence + 3);
  EXPECT_EQ(ledger.queued_behind().count(), 10'000);
  ledger.settle({sequence + 1});
  EXPECT_EQ(ledger.queued_behind().count(), 5'000);
}

TEST_F(LedgerTest, StreamsThatWorkBesideEachOtherCountOnce) {
  const auto teach = [&](std::string_view kind, std::int64_t compute, std::int64_t copy) {
    Ticket& ticket = open({}, kind);
    ticket.device_time.at(index_of(StreamRole::kCompute)) = compute;
    ticket.device_time.at(index_of(StreamRole::kCopyIn)) = copy;
    close(ticket, ++sequence);
    ledger.settle({sequence});
  };
  teach("train", 5'000, 4'000);
  teach("load", 0, 4'000);
  close(open({}, "train"), sequence + 1);
  close(open({}, "train"), sequence + 2);
  EXPECT_EQ(ledger.queued_behind().count(), 5'000) << "the copies run beside the computing";
  close(open({}, "load"), sequence + 3);
  EXPECT_EQ(ledger.queued_behind().count(), 8'000) << "now the copies take longest";
}

TEST_F(LedgerTest, ABatchOfAKindThatNeverSettledIsExpectedToTakeLong) {
  close(open({}), 1);
  close(open({}), 2);
  EXPECT_EQ(ledger.queued_behind(), Ledger::kUnknownTime);
}

TEST_F(LedgerTest, ABatchOfANewKindIsExpectedToTakeAsLongAsTheLongestKnown) {
  run({}, {.kind = "short", .device_time = 1'000});
  run({}, {.kind = "long", .device_time = 7'000});
  close(open({}, "short"), sequence + 1);
  close(open({}, "new"), sequence + 2);
  close(open({}, "short"), sequence + 3);
  EXPECT_EQ(ledger.queued_behind().count(), 8'000);
}

TEST_F(LedgerTest, WhatTheDeviceHasPassedIsNotQueuedAlsoBeforeItIsSettled) {
  run(mib(1), {.device_time = 5'000});
  for (std::uint64_t i = 1; i <= 3; ++i) close(open({}), sequence + i);
  EXPECT_EQ(ledger.queued_behind({sequence}).count(), 10'000);
  EXPECT_EQ(ledger.queued_behind({sequence + 1}).count(), 5'000);
  EXPECT_EQ(ledger.queued_behind({sequence + 3}).count(), 0);
}

TEST_F(LedgerTest, OfManyKindsThoseThatSettledLastAreTheKnownOnes) {
  run(mib(9), {.kind = "of long ago", .device_time = 90'000});
  run(mib(5), {.kind = "train", .device_time = 5'000});
  for (std::size_t i = 0; i < Ledger::kKnownKinds; ++i) {
    run(mib(1), {.kind = "eval " + std::to_string(i), .device_time = 1'000});
    run(mib(5), {.kind = "train", .device_time = 5'000});
  }
  EXPECT_EQ(ledger.expected(ledger.kind("new"), std::nullopt), mib(5));
  EXPECT_EQ(ledger.expected_time(ledger.kind("new")).count(), 5'000);
  EXPECT_EQ(ledger.expected(ledger.kind("of long ago"), std::nullopt), mib(9)) << "it is known";
}

TEST_F(LedgerTest, OnlyWhatOpenBatchesAllocatedIsNotLive) {
  Ticket& ticket = open(mib(9));
  ledger.note_allocated(ref(ticket), mib(3));
  ledger.note_freed(ref(ticket), mib(1), true);
  EXPECT_EQ(ledger.allocated(), mib(2)) << "the pool knows what awaits";
  close(ticket, 1);
  EXPECT_EQ(ledger.allocated(), Bytes{}) << "what it did not free is live now";
}

TEST_F(LedgerTest, AnOpenBatchIsForgottenWhenManyOthersWereClosedSinceItAllocatedAndForLong) {
  constexpr std::chrono::seconds kPatience{10};
  std::chrono::steady_clock::time_point now;
  const auto take_forgotten = [&] { return ledger.take_forgotten(now, kPatience); };
  Ticket& ticket = open(mib(1));
  const auto close_some = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) run({});
  };
  close_some(Ledger::kManyBatches - 1);
  now += kPatience;
  EXPECT_EQ(take_forgotten(), nullptr) << "few others were closed";
  close_some(1);
  EXPECT_EQ(take_forgotten(), nullptr) << "found idle just now";
  now += kPatience;
  ledger.note_allocated(ref(ticket), kib(1));
  close_some(Ledger::kManyBatches);
  EXPECT_EQ(take_forgotten(), nullptr) << "it is slow, but it works";
  now += kPatience - std::chrono::nanoseconds(1);
  EXPECT_EQ(take_forgotten(), nullptr) << "not for long";
  now += std::chrono::nanoseconds(1);
  EXPECT_EQ(ledger.unspent(), mib(1) - kib(1));
  EXPECT_EQ(take_forgotten(), &ticket);
  EXPECT_EQ(take_forgotten(), nullptr) << "told once";
  EXPECT_EQ(ledger.unspent(), Bytes{}) << "nothing is kept for it";
  EXPECT_EQ(ledger.charged(), kib(1));
  ledger.note_allocated(ref(ticket), kib(1));
  EXPECT_EQ(ledger.unspent(), mib(1) - kib(2)) << "until it allocates again";
}

TEST_F(LedgerTest, AnOpenBatchIsKeptWhileFewOthersWereClosedSinceItAllocated) {
  constexpr std::chrono::seconds kPatience{10};
  std::chrono::steady_clock::time_point now;
  Ticket& ticket = open(mib(1));
  for (std::uint64_t i = 0; i < Ledger::kManyBatches; ++i) run({});
  ledger.note_allocated(ref(ticket), kib(1));
  run({});
  for (int look = 0; look < 3; ++look) {
    EXPECT_EQ(ledger.take_forgotten(now, kPatience), nullptr) << "it is slow, but so are they";
    now += kPatience;
  }
}

TEST_F(LedgerTest, AWaiterAwaitsTheOldestAndInALongQueueTheOneAQuarterIn) {
  for (std::uint64_t n = 1; n <= 3; ++n) close(open({}), n);
  EXPECT_EQ(ledger.point_to_await({})->sequence, 1U);
  for (std::uint64_t n = 4; n <= 16; ++n) close(open({}), n);
  EXPECT_EQ(ledger.point_to_await({})->sequence, 5U);
  EXPECT_EQ(ledger.point_to_await({7})->sequence, 8U) << "never one that is passed";
}

TEST_F(LedgerTest, APointThatCouldNotBeRecordedIsNeverPassedUntilItIs) {
  Ticket& ticket = open(mib(1));
  close(ticket, Ledger::kUnrecorded);
  EXPECT_EQ(ledger.settle({UINT64_MAX - 1}), 0U);
  EXPECT_TRUE(ledger.unrecorded().at(index_of(kStream)));
  EXPECT_FALSE(ledger.point_to_await({}).has_value()) << "nobody can wait for it";
  ledger.note_recorded(kStream, {stream, 12}, ledger.closed());
  EXPECT_FALSE(ledger.unrecorded().at(index_of(kStream)));
  EXPECT_EQ(ledger.point_to_await({})->sequence, 12U);
  EXPECT_EQ(ledger.settle({12}), 1U);
}

TEST_F(LedgerTest, APointRecordedLateIsOnlyForTheBatchesThatWereClosedBefore) {
  close(open({}), Ledger::kUnrecorded);
  const std::uint64_t closed = ledger.closed();
  close(open({}), Ledger::kUnrecorded);
  ledger.note_recorded(kStream, {stream, 12}, closed);
  EXPECT_EQ(ledger.settle({12}), 1U);
  EXPECT_TRUE(ledger.unrecorded().at(index_of(kStream))) << "the second may have gone on since";
}

TEST_F(LedgerTest, AnyOrderOfStepsEndsWithNoCharge) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  std::vector<Ticket*> opened;
  std::uint64_t closed = 0;
  for (int step = 0; step < 20'000; ++step) {
    switch (random() % 5) {
      case 0:
        opened.push_back(&open({random() % 1000}));
        break;
      case 1:
      case 2:
        if (!opened.empty()) {
          ledger.note_allocated(ref(*opened[random() % opened.size()]), {random() % 500});
        }
        break;
      case 3:
        if (!opened.empty()) {
          const std::size_t i = random() % opened.size();
          Ticket& ticket = *opened[i];
          ledger.note_freed(ref(ticket), {ticket.net.count / 2}, false);
          close(ticket, ++closed, random() % 2 == 0);
          opened.erase(opened.begin() + static_cast<std::ptrdiff_t>(i));
        }
        break;
      default:
        ledger.settle({closed > 3 ? closed - 3 : 0});
    }
    Bytes unspent;
    for (const Ticket* ticket : opened) unspent += minus_or_zero(ticket->estimate, ticket->net);
    ASSERT_EQ(ledger.unspent(), unspent);
    ASSERT_EQ(ledger.open_count(), opened.size());
  }
  for (Ticket* ticket : opened) close(*ticket, ++closed);
  ledger.settle({closed});
  EXPECT_EQ(ledger.charged(), Bytes{});
  EXPECT_EQ(ledger.settled(), closed);
}

}  // namespace
}  // namespace weir
