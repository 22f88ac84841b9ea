// The charges of batches and what is learned from them, without a device or a clock. One long file,
// because every case changes the same ledger by the same few calls.

#include "scheduler/ledger/ledger.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/print.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using std::chrono::nanoseconds;
using testing::random_seed;
using testing::seed_message;

constexpr StreamRole kStream = StreamRole::kCompute;
constexpr std::size_t kCopy = index_of(StreamRole::kCopyIn);

class LedgerTest : public ::testing::Test {
 protected:
  Ticket& open(Bytes estimate, std::string_view kind = "train") {
    return ledger.open(ledger.use(kind), estimate);
  }
  BatchKind& kind(std::string_view name) {
    BatchKind& kind = ledger.use(name);
    ledger.unuse(kind);
    return kind;
  }
  static TicketRef ref(Ticket& ticket) { return {&ticket, ticket.serial}; }
  /// Closes a batch that used these streams, at `point` on each.
  void close(Ticket& ticket, std::uint64_t point, bool learn = true,
             StreamRoleSet used = {kStream}) {
    ticket.touched = used;
    std::array<Point, kStreamRoles> points{};
    points.fill({stream, point});
    ticket.points = points;
    ledger.close(ticket, learn);
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
    ticket.note_ran(kStream, {.device_time = nanoseconds(course.device_time)});
    close(ticket, ++sequence, course.learn);
    ASSERT_EQ(ledger.settle({sequence}), 1U);
  }
  void run(Bytes peak) { run(peak, Course{}); }
  [[nodiscard]] std::optional<Bytes> footprint() { return kind("train").footprint; }
  [[nodiscard]] std::int64_t queued(std::string_view name) {
    return ledger.queued(kind(name)).time.count();
  }

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
  ticket.touched = {StreamRole::kCompute, StreamRole::kCopyIn};
  std::array<Point, kStreamRoles> points{};
  points.at(0) = {stream, 3};
  points.at(2) = {StreamId::next(), 8};
  ticket.points = points;
  ledger.close(ticket, true);
  EXPECT_EQ(ledger.settle({3, 0, 7, 0}), 0U);
  EXPECT_EQ(ledger.point_to_await()->sequence, 8U);
  EXPECT_FALSE(ledger.point_to_await(0).has_value()) << "that stream has passed it";
  EXPECT_EQ(ledger.settle({3, 0, 8, 0}), 1U);
  EXPECT_FALSE(ledger.point_to_await().has_value());
}

TEST_F(LedgerTest, ABatchThatTouchedNothingIsSettledAtOnce) {
  Ticket& ticket = open(mib(1));
  ledger.close(ticket, true);
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

TEST_F(LedgerTest, ALargerPeakCountsAtOnceAndASmallerOneSlowly) {
  EXPECT_FALSE(footprint().has_value());
  for (const Bytes& peak : {mib(4), mib(16)}) {
    run(peak);
    EXPECT_EQ(footprint(), peak);
  }
  run(mib(4));
  EXPECT_LT(footprint(), mib(16));
  EXPECT_GT(footprint(), mib(15));
  for (int i = 0; i < 300; ++i) run(mib(4));
  EXPECT_LE(footprint(), mib(4) + Bytes{16});
  EXPECT_GE(footprint(), mib(4));
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

TEST_F(LedgerTest, StateIsExpectedOnceAndACacheThatGrowsAgainAndAgain) {
  struct Step {
    Bytes keeps;
    Bytes expected;  ///< afterwards; each batch gives 4 MiB back
  };
  const auto check = [&](std::string_view name, std::initializer_list<Step> steps) {
    for (const Step& step : steps) {
      run(mib(4), {.kind = name, .keeps = step.keeps});
      EXPECT_EQ(kind(name).footprint, step.expected) << name;
    }
  };
  check("first makes state", {{mib(32), mib(36)}, {{}, mib(4)}, {{}, mib(4)}});
  check("third makes state", {{{}, mib(4)}, {{}, mib(4)}, {mib(32), mib(36)}, {{}, mib(4)}});
  check("cache", {{mib(2), mib(6)}, {mib(2), mib(6)}, {mib(2), mib(6)}});
}

TEST_F(LedgerTest, WhatTheNextBatchFreesWasGivenBack) {
  TicketRef last;
  Bytes held;
  for (int i = 0; i < 10; ++i) {
    const Bytes size = i % 2 == 0 ? mib(16) : mib(1);  // of all sizes the largest is expected
    Ticket& ticket = open({});
    ledger.note_allocated(ref(ticket), size);
    ledger.note_freed(std::exchange(last, ref(ticket)), std::exchange(held, size), true);
    close(ticket, ++sequence);
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
  EXPECT_EQ(ledger.expected(kind("train"), mib(10)), mib(10));
  run(mib(1));
  EXPECT_EQ(ledger.expected(kind("train"), mib(10)), mib(1));
}

TEST_F(LedgerTest, AKindThatIsNotKnownIsExpectedToBeAsLargeAsTheLargest) {
  EXPECT_EQ(ledger.expected(kind("new"), {}), std::nullopt);
  run(mib(1), {.kind = "small"});
  EXPECT_EQ(ledger.expected(kind("new"), {}), mib(1));
  run(mib(8), {.kind = "large"});
  run(mib(1), {.kind = "small"});
  EXPECT_EQ(ledger.expected(kind("new"), {}), mib(8));
  EXPECT_EQ(ledger.expected(kind("new"), mib(2)), mib(2)) << "a hint is of this kind";
  EXPECT_EQ(ledger.expected(kind("small"), {}), mib(1));
}

TEST_F(LedgerTest, WhatTheOnlyBatchOfAKindKeptIsNotExpectedOfOtherKinds) {
  run({}, {.kind = "init", .keeps = mib(32)});
  EXPECT_EQ(ledger.expected(kind("new"), {}), std::nullopt);
  run(mib(2), {.kind = "warm-up", .keeps = mib(32)});
  EXPECT_EQ(ledger.expected(kind("new"), {}), mib(2));
}

TEST_F(LedgerTest, AnAbandonedBatchTeachesNothing) {
  run(mib(8), {.learn = false, .device_time = 1'000'000});
  EXPECT_FALSE(footprint().has_value());
  run(mib(2), {.device_time = 1'000});
  run(mib(8), {.learn = false, .device_time = 1'000'000});
  EXPECT_EQ(footprint(), mib(2));
  EXPECT_EQ(kind("train").device_time.front(), nanoseconds(1'000));
}

TEST_F(LedgerTest, WhatABatchDidOnEachStreamIsAddedUp) {
  const auto at = [](int ns) { return std::chrono::steady_clock::time_point(nanoseconds(ns)); };
  const auto ns = [](int count) { return nanoseconds(count); };
  Ticket& ticket = open({});
  ticket.note_ran(kStream, {.device_time = ns(10), .gap = ns(5), .starved = ns(3), .end = at(110)});
  ticket.note_ran(kStream, {.device_time = ns(20), .gap = ns(7), .starved = ns(4), .end = at(137)});
  EXPECT_EQ(ticket.run().front().device_time, ns(0)) << "no stream counts as used before the end";
  close(ticket, 1);
  const StreamRun run = ticket.run().front();
  EXPECT_EQ(run.device_time, ns(30));
  EXPECT_EQ(run.gap, ns(5)) << "before the batch";
  EXPECT_EQ(run.starved, ns(7)) << "before the batch and in it";
  EXPECT_EQ(run.begun, ns(100));
  EXPECT_EQ(run.ended, ns(137));
}

TEST_F(LedgerTest, QueuedIsWhatIsExpectedOfOpenAndSubmittedBatchesBehindTheRunningOne) {
  run(mib(1), {.device_time = 5'000});
  std::array<Ticket*, 4> tickets{};
  for (Ticket*& ticket : tickets) ticket = &open({});
  EXPECT_EQ(queued("train"), 0) << "nothing runs";
  close(*tickets[0], sequence + 1);
  EXPECT_EQ(queued("train"), 15'000);
  close(*tickets[1], sequence + 2);
  EXPECT_EQ(queued("train"), 15'000) << "an open batch counts like a submitted one";
  ledger.lapse(*tickets[2]);
  EXPECT_EQ(queued("train"), 10'000) << "it may never be closed";
  ledger.settle({sequence + 1});
  EXPECT_EQ(queued("train"), 5'000);
  ledger.settle({sequence + 2});
  EXPECT_EQ(queued("train"), 0);
}

TEST_F(LedgerTest, EachStreamHasItsOwnQueueAndABatchTheLongestOfThoseThatItUses) {
  const auto submit = [&](std::string_view name, int compute, int copy) {
    Ticket& ticket = open({}, name);
    ticket.note_ran(kStream, {.device_time = nanoseconds(compute)});
    ticket.note_ran(StreamRole::kCopyIn, {.device_time = nanoseconds(copy)});
    StreamRoleSet used;
    if (compute != 0) used.insert(kStream);
    if (copy != 0) used.insert(StreamRole::kCopyIn);
    close(ticket, ++sequence, true, used);
  };
  submit("train", 5'000, 4'000);
  submit("load", 0, 4'000);
  submit("infer", 5'000, 0);
  ledger.settle({sequence, sequence, sequence, sequence});
  for (int i = 0; i < 3; ++i) submit("train", 5'000, 4'000);
  submit("load", 0, 4'000);
  EXPECT_EQ(queued("train"), 12'000) << "the copies";
  EXPECT_EQ(ledger.queued(kind("train")).role, kCopy);
  EXPECT_EQ(queued("load"), 12'000);
  EXPECT_EQ(queued("infer"), 10'000);
  submit("train", 0, 4'000);
  EXPECT_EQ(queued("infer"), 10'000) << "the last one did not compute";
  ledger.note_passed({0, 0, sequence, 0});
  EXPECT_EQ(queued("load"), 0) << "copies run ahead";
  EXPECT_EQ(queued("train"), 10'000);
  EXPECT_EQ(ledger.point_to_await(kCopy), std::nullopt);
  EXPECT_EQ(ledger.point_to_await(index_of(kStream))->sequence, sequence - 3);
}

TEST_F(LedgerTest, ABatchOfANewKindIsExpectedToTakeTheMeanOfAll) {
  EXPECT_EQ(ledger.expected_times(kind("new")), StreamTimes{}) << "nothing is known";
  run({}, {.kind = "short", .device_time = 1'000});
  run({}, {.kind = "long", .device_time = 17'000});
  EXPECT_EQ(ledger.expected_times(kind("new")).front().count(), 2'000);
  EXPECT_EQ(ledger.expected_times(kind("short")).front().count(), 1'000);
  for (const auto* name : {"long", "new", "short"}) close(open({}, name), ++sequence);
  EXPECT_EQ(queued("short"), 3'000);
  EXPECT_EQ(queued("new"), 3'000);
}

TEST_F(LedgerTest, WhatTheDeviceHasPassedIsNotQueuedAlsoBeforeItIsSettled) {
  run(mib(1), {.device_time = 5'000});
  for (std::uint64_t i = 1; i <= 3; ++i) close(open({}), sequence + i);
  EXPECT_EQ(queued("train"), 10'000);
  ledger.note_passed({sequence + 1});
  EXPECT_EQ(queued("train"), 5'000);
  ledger.note_passed({sequence});
  EXPECT_EQ(queued("train"), 5'000) << "the device does not go back";
  ledger.note_passed({sequence + 3});
  EXPECT_EQ(queued("train"), 0);
  EXPECT_EQ(ledger.submitted(), 3U);
  EXPECT_EQ(ledger.settle({}), 3U);
}

TEST_F(LedgerTest, ABatchWhosePointIsPassedWhenItIsClosedIsSettledWithTheNextLook) {
  EXPECT_EQ(ledger.settle({9}), 0U);
  close(open({}), 9);
  EXPECT_EQ(ledger.settle({9}), 1U);
  close(open({}), Ledger::kUnrecorded);
  EXPECT_EQ(ledger.settle({9}), 0U);
  ledger.note_recorded(index_of(kStream), {stream, 9}, ledger.closed());
  EXPECT_EQ(ledger.settle({9}), 1U);
}

TEST_F(LedgerTest, WhatTheLargestKindHoldsIsExpectedOfANewOneAndFades) {
  run(mib(9), {.kind = "of long ago"});
  run(mib(5));
  for (std::size_t i = 0; i < Ledger::kFadeKinds; ++i) {
    run(mib(1), {.kind = "eval " + std::to_string(i)});
    run(mib(5));
  }
  EXPECT_EQ(ledger.expected(kind("new"), std::nullopt), mib(5));
  EXPECT_EQ(ledger.expected(kind("of long ago"), std::nullopt), mib(9)) << "it is known";
}

TEST_F(LedgerTest, WhatABatchKeepsIsNotExpectedOfANewKindUntilItIsFreed) {
  Ticket& ticket = open({}, "train");
  ledger.note_allocated(ref(ticket), mib(5));
  ledger.note_freed(ref(ticket), mib(1), false);
  close(ticket, ++sequence);
  EXPECT_EQ(ledger.settle({sequence}), 1U);
  EXPECT_EQ(ledger.expected(kind("new"), std::nullopt), mib(1)) << "the rest may be weights";
  ledger.note_freed(ref(ticket), mib(2), false);
  EXPECT_EQ(ledger.expected(kind("new"), std::nullopt), mib(3)) << "dropped after the settle";
  run(mib(2), {.kind = "train"});
  EXPECT_EQ(ledger.expected(kind("new"), std::nullopt), mib(3));
}

TEST_F(LedgerTest, KindsThatNobodyUsesAreForgottenAndNoOthers) {
  constexpr std::uint64_t kNames = 100'000;
  constexpr std::uint64_t kRemembered = Ledger::kRememberedKinds;
  (void)ledger.use("waits");
  Ticket& is_open = open({}, "open");
  run(mib(3), {.kind = "once"});
  run(mib(2), {.kind = "now and then"});
  for (std::uint64_t i = 1; i <= kNames; ++i) {
    run(mib(1), {.kind = "kind " + std::to_string(i)});
    if (i % (kRemembered / 2) != 0) continue;
    ASSERT_LE(ledger.kinds(), 2 * kRemembered);
    ASSERT_EQ(kind("now and then").footprint, mib(2)) << "after " << i;
    run(mib(2), {.kind = "now and then"});
  }
  EXPECT_EQ(kind("once").footprint, std::nullopt);
  EXPECT_EQ(kind("waits").users, 1U);
  EXPECT_EQ(kind("open").users, 1U);
  for (std::uint64_t i = 0; i < kRemembered; ++i) run(mib(4));
  for (std::uint64_t i = 0; i < 3 * kRemembered; ++i) (void)kind("asked for " + std::to_string(i));
  EXPECT_LE(ledger.kinds(), 2 * kRemembered);
  close(is_open, ++sequence);
  EXPECT_EQ(ledger.settle({sequence}), 1U);
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
  EXPECT_EQ(ledger.point_to_await()->sequence, 1U);
  for (std::uint64_t n = 4; n <= 16; ++n) close(open({}), n);
  EXPECT_EQ(ledger.point_to_await()->sequence, 5U);
  ledger.note_passed({7});
  EXPECT_EQ(ledger.point_to_await()->sequence, 8U) << "never one that is passed";
}

TEST_F(LedgerTest, APointThatCouldNotBeRecordedIsNeverPassedUntilItIs) {
  Ticket& ticket = open(mib(1));
  close(ticket, Ledger::kUnrecorded);
  EXPECT_EQ(ledger.settle({11}), 0U);
  EXPECT_TRUE(ledger.unrecorded().contains(index_of(kStream)));
  EXPECT_FALSE(ledger.point_to_await().has_value()) << "nobody can wait for it";
  ledger.note_recorded(index_of(kStream), {stream, 12}, ledger.closed());
  EXPECT_FALSE(ledger.unrecorded().contains(index_of(kStream)));
  EXPECT_EQ(ledger.point_to_await()->sequence, 12U);
  EXPECT_EQ(ledger.settle({12}), 1U);
}

TEST_F(LedgerTest, APointRecordedLateIsOnlyForTheBatchesThatWereClosedBefore) {
  close(open({}), Ledger::kUnrecorded);
  const std::uint64_t closed = ledger.closed();
  close(open({}), Ledger::kUnrecorded);
  ledger.note_recorded(index_of(kStream), {stream, 12}, closed);
  EXPECT_EQ(ledger.settle({12}), 1U);
  EXPECT_TRUE(ledger.unrecorded().contains(index_of(kStream)))
      << "the second may have gone on since";
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
