// What the rules take from the ledger for the run-ahead limit, and who is held back by which queue.

#include "scheduler/admission/admission_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace weir {
namespace {

using std::chrono::milliseconds;
using Roles = std::vector<StreamRole>;

constexpr Pressure kPressure{.held = {}, .budget = mib(64), .awaiting = {}};
constexpr StreamRole kCompute = StreamRole::kCompute;
constexpr StreamRole kSecond = StreamRole::kCompute2;
constexpr StreamRole kCopies = StreamRole::kCopyIn;

/// The rules with a device that runs what the test says. Each batch has the next point of every
/// stream that it uses.
class Driven {
 public:
  explicit Driven(const RunAhead& run_ahead = {}) : rules(run_ahead) {}

  Ticket& admit(std::string_view kind, milliseconds held_back = {}) {
    Applicant batch;
    batch.held_back = held_back;
    rules.apply(batch, kind, 1);
    rules.line_up(batch, kPressure);
    return rules.admit(batch, mib(1), kPressure);
  }
  /// Closes it, with the device at `passed`.
  void close(Ticket& ticket, const Roles& roles, const AdmissionRules::Passed& passed = {}) {
    ++point;
    std::array<Point, kStreamRoles> points{};
    for (const StreamRole role : roles) {
      ticket.touched.insert(role);
      points.at(index_of(role)) = {StreamId{1 + index_of(role)}, point};
    }
    ticket.points = points;
    rules.close(ticket, true, passed);
  }
  void submit(std::string_view kind, const Roles& roles) { close(admit(kind), roles); }
  /// Settles all batches up to the point `to`.
  void settle(std::uint64_t to) {
    AdmissionRules::Passed passed{};
    passed.fill(to);
    rules.settle(passed);
  }
  /// Runs a batch of a kind, which is known then.
  void learn(std::string_view kind, const Roles& roles, const std::vector<milliseconds>& times) {
    Ticket& ticket = admit(kind);
    close(ticket, roles);
    for (std::size_t i = 0; i < roles.size(); ++i) {
      ticket.note_ran(roles[i], {.device_time = times[i]});
    }
    settle(point);
  }

  AdmissionRules rules;
  std::uint64_t point = 0;
};

/// A batch that asks, and what it is told.
class Asks {
 public:
  Asks(Driven& driven, std::string_view kind) : rules_(driven.rules) {
    rules_.apply(batch_, kind, 2);
    rules_.line_up(batch_, kPressure);
  }
  ~Asks() { rules_.leave(batch_); }
  Asks(const Asks&) = delete;
  Asks& operator=(const Asks&) = delete;

  [[nodiscard]] AdmissionState state() const { return rules_.state_of(batch_, false, kPressure); }
  [[nodiscard]] Decision decision() const { return rules_.decide(state()); }
  [[nodiscard]] Point awaits(Decision decision) const {
    return rules_.point_to_await(batch_, decision).value();
  }

 private:
  AdmissionRules& rules_;
  Applicant batch_;
};

TEST(AdmissionRules, ABatchIsHeldBackOnlyByTheQueuesOfItsOwnStreams) {
  Driven driven({.batches = 1, .time = milliseconds(20)});
  driven.learn("first", {kCompute}, {milliseconds(10)});
  driven.learn("second", {kSecond}, {milliseconds(15)});
  driven.learn("both", {kCompute, kSecond}, {milliseconds(10), milliseconds(1)});
  for (int i = 0; i < 3; ++i) driven.submit("first", {kCompute});
  EXPECT_EQ(Asks(driven, "first").decision(), Decision::kWaitSoft);
  EXPECT_EQ(Asks(driven, "both").decision(), Decision::kWaitSoft) << "the fullest counts";
  EXPECT_EQ(Asks(driven, "second").decision(), Decision::kAdmit);
  driven.submit("second", {kSecond});
  (void)driven.admit("second");
  EXPECT_EQ(Asks(driven, "second").state().queued, milliseconds(15)) << "open, behind the running";
  (void)driven.admit("second");
  EXPECT_EQ(Asks(driven, "second").decision(), Decision::kWaitSoft);
}

TEST(AdmissionRules, ABatchThatIsHeldBackWaitsForTheFullestOfItsStreams) {
  Driven driven;
  driven.learn("first", {kCompute}, {milliseconds(10)});
  driven.learn("second", {kSecond}, {milliseconds(1)});
  driven.learn("both", {kCompute, kSecond}, {milliseconds(10), milliseconds(1)});
  driven.submit("second", {kSecond});
  const std::uint64_t oldest = driven.point;
  for (int i = 0; i < 2; ++i) driven.submit("first", {kCompute});
  const Asks both(driven, "both");
  EXPECT_EQ(both.awaits(Decision::kWaitSoft),
            (Point{StreamId{1 + index_of(kCompute)}, oldest + 1}));
  EXPECT_EQ(both.awaits(Decision::kWaitHard), (Point{StreamId{1 + index_of(kSecond)}, oldest}))
      << "memory comes from any";
}

/// How a batch waited.
struct WaitedFor {
  milliseconds held_back{10};
  bool for_room = false;
  bool in_allocation = false;
};

/// Runs a batch before which nothing was enqueued for 3 ms. Returns what it says we lost.
std::chrono::nanoseconds lost(Driven& driven, const WaitedFor& waits = {}) {
  const auto before = driven.rules.run_ahead().caused_idle;
  Applicant batch;
  batch.held_back = waits.held_back;
  batch.waited_for_room = waits.for_room;
  driven.rules.apply(batch, "train", 1);
  Ticket& ticket = driven.rules.admit(batch, mib(1), kPressure);
  if (waits.in_allocation) driven.rules.ledger().note_waited({&ticket, ticket.serial});
  driven.close(ticket, {kCompute});
  const milliseconds end(100 * driven.point);
  ticket.note_ran(kCompute, {.device_time = milliseconds(2),
                             .gap = milliseconds(3),
                             .starved = milliseconds(3),
                             .end = std::chrono::steady_clock::time_point(end)});
  driven.settle(driven.point);
  return driven.rules.run_ahead().caused_idle - before;
}

TEST(AdmissionRules, TheGapOfABatchThatWaitedForMemoryIsTheBudgets) {
  Driven driven;
  EXPECT_EQ(lost(driven, {.for_room = true}), milliseconds(0));
  EXPECT_EQ(lost(driven, {.in_allocation = true}), milliseconds(0));
  EXPECT_EQ(lost(driven), milliseconds(3)) << "of another frontend";
  EXPECT_EQ(lost(driven, {.in_allocation = true}), milliseconds(0));
  EXPECT_EQ(lost(driven), milliseconds(3)) << "beside what was lost before";
}

TEST(AdmissionRules, StallsBeforeAFrontendWaitedForTheDeviceItselfCostNothing) {
  Driven driven;
  (void)driven.admit("train", milliseconds(10));
  driven.rules.note_synchronized();
  EXPECT_EQ(lost(driven, {.held_back = milliseconds(1)}), milliseconds(1));
}

TEST(AdmissionRules, AWaitForOtherWorkThanTheLastBatchForgivesNoStall) {
  for (const bool in_flight : {false, true}) {
    Driven driven;
    driven.learn("train", {kCompute}, {milliseconds(1)});
    (void)driven.admit("train", milliseconds(10));
    if (in_flight) driven.submit("train", {kCompute});
    driven.rules.note_synchronized(in_flight ? 0 : 7);  // by the same thread, or another
    driven.settle(driven.point);
    EXPECT_EQ(lost(driven, {.held_back = milliseconds(1)}), milliseconds(3));
  }
}

TEST(AdmissionRules, LostTimeLengthensTheTargetAndLiftsHalfOfTheRoom) {
  Driven driven;
  const auto soft = [&driven] {
    AdmissionState state = Asks(driven, "train").state();
    state.open = state.submitted = 1;
    state.pressure.held = mib(32);
    state.estimate = mib(1);
    return driven.rules.decide(state) == Decision::kWaitSoft;
  };
  for (std::uint64_t i = 0; i < RunAheadLimit::kWindow; ++i) {
    driven.learn("train", {kCompute}, {milliseconds(2)});
  }
  EXPECT_TRUE(soft());
  EXPECT_EQ(lost(driven), milliseconds(3));
  EXPECT_FALSE(soft());
  EXPECT_GT(driven.rules.run_ahead().target, milliseconds(2 * 190 + 3));
}

TEST(AdmissionRules, TheQueueHidesTheLongestCopiesOfABatchInTheLine) {
  Driven driven;
  driven.learn("small", {kCopies, kCompute}, {milliseconds(1), milliseconds(5)});
  driven.learn("large", {kCopies, kCompute}, {milliseconds(9), milliseconds(5)});
  const Asks small(driven, "small");
  EXPECT_EQ(small.state().copy, milliseconds(1));
  const Asks large(driven, "large");
  EXPECT_EQ(small.state().copy, milliseconds(9)) << "it may be the next";
  AdmissionState state = small.state();
  state.open = state.submitted = 1;
  state.is_due = true;
  state.queued = RunAheadLimit::kFirstTime + milliseconds(8);
  EXPECT_EQ(driven.rules.decide(state), Decision::kAdmit);
  state.queued += milliseconds(1);
  EXPECT_EQ(driven.rules.decide(state), Decision::kWaitSoft);
}

/// A host that is faster than the device, which runs one batch after the other without a gap.
class FastHost {
 public:
  explicit FastHost(bool for_memory = false) : for_memory_(for_memory) {}

  /// Returns the target after the first window, or many batches, each closed with eight before it.
  std::chrono::nanoseconds target_after(std::uint64_t batches, std::uint64_t unpassed) {
    for (std::uint64_t settled = 0; settled < batches;) {
      submit(unpassed);
      if (queue_.size() <= 8) continue;
      settle_oldest();
      ++settled;
    }
    return driven_.rules.run_ahead().target;
  }

 private:
  /// Admits and closes a batch, with the last `unpassed` of those before not passed.
  void submit(std::uint64_t unpassed) {
    Ticket& ticket = driven_.admit("train", milliseconds(for_memory_ ? 0 : 1));
    if (for_memory_) driven_.rules.ledger().note_waited({&ticket, ticket.serial});
    const std::uint64_t closed = driven_.point;
    AdmissionRules::Passed passed{};
    passed.at(index_of(kCompute)) = closed - std::min(closed, unpassed);
    driven_.close(ticket, {kCompute}, passed);
    queue_.push_back(&ticket);
  }
  void settle_oldest() {
    Ticket& ticket = *queue_.front();
    queue_.pop_front();
    ticket.note_ran(kCompute, {.device_time = milliseconds(1)});
    driven_.settle(driven_.point - queue_.size());
  }

  Driven driven_;
  const bool for_memory_;  ///< it waits for memory, and not for the target
  std::deque<Ticket*> queue_;
};

TEST(AdmissionRules, TheTargetFallsWhereTheHostOrTheMemoryKeepsTheQueueFull) {
  EXPECT_LT(FastHost().target_after(2000, 8), milliseconds(1));
  EXPECT_LT(FastHost(true).target_after(2000, 8), milliseconds(1)) << "held back by memory alone";
}

TEST(AdmissionRules, AQueueThatFellWhileAnotherProducerWaitedIsNoDrain) {
  for (const bool somebody_waits : {false, true}) {
    Driven driven;
    driven.learn("train", {kCompute}, {milliseconds(1)});
    std::vector<Ticket*> open;
    for (int i = 0; i < 9; ++i) open.push_back(&driven.admit("train", milliseconds(1)));
    const std::uint64_t before = driven.point;
    for (std::size_t i = 0; i < 8; ++i) driven.close(*open.at(i), {kCompute}, {});
    AdmissionRules::Passed passed{};
    passed.at(index_of(kCompute)) = before + 8;
    std::optional<Asks> waiting;
    if (somebody_waits) waiting.emplace(driven, "train");
    driven.close(*open.back(), {kCompute}, passed);
    waiting.reset();
    driven.settle(driven.point);
    for (std::uint64_t i = 9; i < RunAheadLimit::kFirstBatches; ++i) {
      driven.learn("train", {kCompute}, {milliseconds(1)});
    }
    // The window's longest queue has eight batches.
    const auto target = driven.rules.run_ahead().target;
    EXPECT_EQ(target == milliseconds(4), somebody_waits) << target.count();
  }
}

TEST(AdmissionRules, WhatTheDeviceHasRunIsNoQueueAlsoBeforeItIsSettled) {
  EXPECT_GE(FastHost().target_after(RunAheadLimit::kFirstBatches, 8), milliseconds(4));
  EXPECT_LE(FastHost().target_after(RunAheadLimit::kFirstBatches, 1), milliseconds(1));
}

}  // namespace
}  // namespace weir
