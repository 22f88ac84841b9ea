// What the rules tell the control of a batch that the device has run.

#include "scheduler/admission/admission_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace weir {
namespace {

using std::chrono::milliseconds;

constexpr Pressure kPressure{.held = {}, .budget = mib(64), .awaiting = {}};

AdmissionRules::Time at(std::chrono::nanoseconds time) { return AdmissionRules::Time(time); }

/// A run in which every batch was held back for 10 ms.
class HeldBackRun {
 public:
  /// Runs a batch with one task on each stream, and returns how much of its idle time we caused.
  std::chrono::nanoseconds caused(const TaskTime& copy, const TaskTime& compute,
                                  const TaskTime& further = {},
                                  StreamRole its_role = StreamRole::kCompute2) {
    const auto before = rules_.control().statistics().caused_idle;
    Applicant batch;
    batch.held_back = milliseconds(10);
    rules_.join(batch, "train", 1, kPressure);
    Ticket& ticket = rules_.admit(batch, mib(1), kPressure);
    const Point point{.stream = StreamId{1}, .sequence = ++closed_};
    ticket.touched = {true};
    rules_.close(ticket, {point}, true, {});
    ticket.note_ran(StreamRole::kCopyIn, copy);
    ticket.note_ran(StreamRole::kCompute, compute);
    if (further.device_time.count() != 0) ticket.note_ran(its_role, further);
    rules_.settle({closed_});
    return rules_.control().statistics().caused_idle - before;
  }
  [[nodiscard]] std::chrono::nanoseconds most_target() const {
    return rules_.control().statistics().most;
  }

 private:
  AdmissionRules rules_{RunAhead{}};
  std::uint64_t closed_ = 0;
};

TEST(AdmissionRules, TheGapOfTheBusiestStreamIsOursIfTheOtherHadNothingToDoEither) {
  EXPECT_EQ(
      HeldBackRun().caused(
          {.device_time = milliseconds(1), .starved = milliseconds(5), .end = at(milliseconds(7))},
          {.device_time = milliseconds(2),
           .gap = milliseconds(3),
           .starved = milliseconds(2),
           .end = at(milliseconds(9))}),
      milliseconds(3));
}

TEST(AdmissionRules, AGapInWhichTheComputeWaitedForItsCopyIsOursIfTheCopyCameLate) {
  // The compute was enqueued before the one before it ended, and its copy took until 7.
  EXPECT_EQ(
      HeldBackRun().caused(
          {.device_time = milliseconds(1),
           .gap = milliseconds(4),
           .starved = milliseconds(4),
           .end = at(milliseconds(7))},
          {.device_time = milliseconds(2), .gap = milliseconds(3), .end = at(milliseconds(9))}),
      milliseconds(3));
}

TEST(AdmissionRules, AGapBeforeAComputeThatHadAllItNeededIsTheDevicesOwn) {
  const TaskTime compute{.device_time = milliseconds(2),
                         .gap = std::chrono::microseconds(5),
                         .end = at(milliseconds(9))};
  const TaskTime early_copy{.device_time = milliseconds(1),
                            .gap = milliseconds(4),
                            .starved = milliseconds(4),
                            .end = at(milliseconds(5))};
  EXPECT_EQ(HeldBackRun().caused(early_copy, compute), milliseconds(0));
  EXPECT_EQ(HeldBackRun().caused({}, compute), milliseconds(0));
  // Nor can it have waited for what began after it, such as a copy to the host.
  const TaskTime later_copy{.device_time = milliseconds(1),
                            .gap = milliseconds(4),
                            .starved = milliseconds(4),
                            .end = at(milliseconds(10))};
  EXPECT_EQ(HeldBackRun().caused(later_copy, compute), milliseconds(0));
}

TEST(AdmissionRules, TheDevicesOwnGapsDoNotRaiseTheTarget) {
  HeldBackRun run;
  for (int i = 0; i < 1000; ++i) {
    (void)run.caused({}, {.device_time = milliseconds(2),
                          .gap = std::chrono::microseconds(5),
                          .end = at(milliseconds(10 + 2 * i))});
  }
  EXPECT_EQ(run.most_target(), milliseconds(0));
}

TEST(AdmissionRules, AGapInWhichTheCopiesRanWithoutAPauseIsNotOurs) {
  EXPECT_EQ(
      HeldBackRun().caused(
          {.device_time = milliseconds(1), .gap = milliseconds(4), .end = at(milliseconds(7))},
          {.device_time = milliseconds(2), .gap = milliseconds(3), .end = at(milliseconds(9))}),
      milliseconds(0));
}

TEST(AdmissionRules, ACopyCouldHaveEndedEarlierByThePausesBeforeIt) {
  HeldBackRun run;
  const auto batch = [&](std::int64_t copied, std::int64_t starved, std::int64_t gap) {
    return run.caused({.device_time = milliseconds(1),
                       .gap = milliseconds(starved),
                       .starved = milliseconds(starved),
                       .end = at(milliseconds(copied))},
                      {.device_time = milliseconds(2),
                       .gap = milliseconds(gap),
                       .end = at(milliseconds(copied + 2))});
  };
  EXPECT_EQ(batch(5, 3, 0), milliseconds(0)) << "late, but not too late";
  EXPECT_EQ(batch(8, 1, 3), milliseconds(3)) << "the copy before it was late, too";
  EXPECT_EQ(batch(11, 0, 3), milliseconds(1)) << "4 ms of pauses in all";
  EXPECT_EQ(batch(14, 0, 3), milliseconds(0)) << "the copies run without a pause";
}

TEST(AdmissionRules, AGapInWhichAnotherComputeStreamRanIsNotOurs) {
  HeldBackRun run;
  const TaskTime no_copy{};
  (void)run.caused(no_copy, {.device_time = milliseconds(2), .end = at(milliseconds(10))},
                   {.device_time = milliseconds(6), .end = at(milliseconds(14))});
  EXPECT_EQ(run.caused(no_copy, {.device_time = milliseconds(2),
                                 .gap = milliseconds(5),
                                 .starved = milliseconds(1),
                                 .end = at(milliseconds(17))}),
            milliseconds(1))
      << "idle from 10 to 15, and the collective ran until 14";
}

TEST(AdmissionRules, AGapInWhichResultsWereCopiedToTheHostIsOurs) {
  HeldBackRun run;
  const TaskTime no_copy{};
  (void)run.caused(no_copy, {.device_time = milliseconds(2), .end = at(milliseconds(10))},
                   {.device_time = milliseconds(6), .end = at(milliseconds(16))},
                   StreamRole::kCopyOut);
  EXPECT_EQ(run.caused(no_copy, {.device_time = milliseconds(2),
                                 .gap = milliseconds(5),
                                 .starved = milliseconds(5),
                                 .end = at(milliseconds(17))}),
            milliseconds(5))
      << "the compute did not wait for the copy of the batch before";
}

TEST(AdmissionRules, ABatchWithALongCopyDelaysTheStreamThatIsBusyOtherwise) {
  HeldBackRun run;
  for (int i = 0; i < 20; ++i) {
    (void)run.caused({.device_time = milliseconds(1), .end = at(milliseconds(2 * i + 1))},
                     {.device_time = milliseconds(2), .end = at(milliseconds(2 * i + 3))});
  }
  EXPECT_EQ(
      run.caused(
          {.device_time = milliseconds(8),
           .gap = milliseconds(2),
           .starved = milliseconds(2),
           .end = at(milliseconds(49))},
          {.device_time = milliseconds(2), .gap = milliseconds(8), .end = at(milliseconds(51))}),
      milliseconds(2))
      << "the computes stood, and the copy could have begun 2 ms earlier";
}

TEST(AdmissionRules, WhereCopiesAreTheBusiestTheirOwnPausesAreLost) {
  EXPECT_EQ(HeldBackRun().caused({.device_time = milliseconds(5),
                                  .gap = milliseconds(3),
                                  .starved = milliseconds(2),
                                  .end = at(milliseconds(8))},
                                 {.device_time = milliseconds(1), .end = at(milliseconds(9))}),
            milliseconds(2))
      << "in the third it waited, for memory that was handed over";
}

TEST(AdmissionRules, AStreamThatTheBatchDoesNotUseHasNoSay) {
  EXPECT_EQ(HeldBackRun().caused({}, {.device_time = milliseconds(2),
                                      .gap = milliseconds(3),
                                      .starved = milliseconds(3),
                                      .end = at(milliseconds(9))}),
            milliseconds(3));
}

TEST(AdmissionRules, TheGapOfAStreamThatIsNotTheBusiestDoesNotCount) {
  EXPECT_EQ(HeldBackRun().caused({.device_time = milliseconds(1), .gap = milliseconds(9)},
                                 {.device_time = milliseconds(2), .gap = milliseconds(0)}),
            milliseconds(0));
}

/// Producers whose batches settle one at a time, oldest first.
class Producers {
 public:
  explicit Producers(milliseconds target) : rules_({.batches = 1, .time = target}) {}

  struct Producer {
    std::uint64_t number = 0;
    std::int64_t takes_ms = 0;  ///< each of its batches, on the device
    std::uint32_t weight = 1;
    Applicant place{};
    bool waits = false;
    int admitted = 0;
  };

  Producer& add(std::int64_t takes_ms, std::uint32_t weight = 1) {
    Producer& added = all_.emplace_back();
    added.number = all_.size();
    added.takes_ms = takes_ms;
    added.weight = weight;
    // Its kind is known.
    join(added);
    admit(added);
    settle_oldest();
    return added;
  }
  void join(Producer& producer) {
    producer.place = {};
    rules_.join(producer.place, std::to_string(producer.takes_ms) + " ms", producer.number,
                kPressure, producer.weight);
    producer.waits = true;
  }
  /// Admits and closes batches until the rules hold somebody back. Each producer joins again at
  /// once.
  void admit_all() {
    for (;;) {
      const auto first = std::ranges::find_if(
          all_, [this](Producer& p) { return p.waits && rules_.first() == &p.place; });
      if (first == all_.end()) return;
      const auto state = rules_.state_of(first->place, false, kPressure);
      if (rules_.decide(state) != Decision::kAdmit) return;
      admit(*first);
      join(*first);
    }
  }
  void settle_oldest() {
    ASSERT_LT(settled_, submitted_.size());
    const auto [ticket, takes] = submitted_.at(settled_++);
    ticket->note_ran(StreamRole::kCompute, {.device_time = takes});
    rules_.settle(passed());
  }

 private:
  [[nodiscard]] std::array<std::uint64_t, kStreamRoles> passed() const {
    std::array<std::uint64_t, kStreamRoles> passed{};
    passed.at(index_of(StreamRole::kCompute)) = settled_;
    return passed;
  }
  void admit(Producer& producer) {
    Ticket& ticket = rules_.admit(producer.place, kib(64), kPressure);
    producer.waits = false;
    ++producer.admitted;
    submitted_.emplace_back(&ticket, milliseconds(producer.takes_ms));
    std::array<Point, kStreamRoles> points{};
    ticket.touched.at(index_of(StreamRole::kCompute)) = true;
    points.at(index_of(StreamRole::kCompute)) = {StreamId{1}, submitted_.size()};
    rules_.ledger().note_allocated({&ticket, ticket.serial}, kib(64));
    rules_.ledger().note_freed({&ticket, ticket.serial}, kib(64), false);
    rules_.close(ticket, points, true, {});
  }

  AdmissionRules rules_;
  std::deque<Producer> all_;
  std::vector<std::pair<Ticket*, milliseconds>> submitted_;  ///< of all time
  std::size_t settled_ = 0;
};

TEST(AdmissionRules, ShortBatchesOfOthersDoNotStarveAProducerOfLongOnes) {
  Producers producers(milliseconds(4));
  auto& slow = producers.add(50);
  std::vector<Producers::Producer*> fast;
  for (int i = 0; i < 5; ++i) fast.push_back(&producers.add(1));
  for (Producers::Producer* each : fast) producers.join(*each);
  producers.admit_all();
  producers.join(slow);
  for (int i = 0; i < 1500; ++i) {  // each a millisecond, or 50
    producers.settle_oldest();
    producers.admit_all();
  }
  EXPECT_NEAR(slow.admitted, 6, 1) << "a sixth of the device's time is its share";
}

TEST(AdmissionRules, ALightProducerIsNotPassedOverForEver) {
  Producers producers(milliseconds(4));
  std::vector<Producers::Producer*> heavy;
  for (int i = 0; i < 3; ++i) heavy.push_back(&producers.add(1, 10));
  auto& light = producers.add(1, 1);
  for (Producers::Producer* each : heavy) producers.join(*each);
  producers.admit_all();
  producers.join(light);
  for (int i = 0; i < 310; ++i) {
    producers.settle_oldest();
    producers.admit_all();
  }
  EXPECT_NEAR(light.admitted, 10, 3) << "one of 31 is its share";
}

TEST(AdmissionRules, WhatTheDeviceHasRunIsNoUnusedQueueAlsoBeforeItIsSettled) {
  AdmissionRules rules{RunAhead{}};
  const auto close = [&rules](Ticket& ticket, std::uint64_t point, std::uint64_t passed) {
    std::array<Point, kStreamRoles> points{};
    std::array<std::uint64_t, kStreamRoles> reached{};
    ticket.touched.front() = true;
    points.front() = {StreamId{1}, point};
    reached.front() = passed;
    rules.close(ticket, points, true, {}, reached);
  };
  const auto open = [&rules](std::chrono::nanoseconds held_back) -> Ticket& {
    Applicant batch;
    batch.held_back = held_back;
    rules.join(batch, "train", 1, kPressure);
    return rules.admit(batch, mib(1), kPressure);
  };
  // Caused idle of 1 s, so that a window ends after 256 batches of 1 s.
  Ticket& first = open(std::chrono::seconds(1));
  close(first, 1, 0);
  first.note_ran(StreamRole::kCopyIn, {.device_time = std::chrono::seconds(1),
                                       .gap = std::chrono::seconds(1),
                                       .starved = std::chrono::seconds(1)});
  rules.settle({1});
  ASSERT_EQ(rules.control().statistics().margin, std::chrono::seconds(1));
  // The device has run each before the next one is closed, and the last three are never settled.
  // More than two windows: in the first there is a close with no batch submitted.
  for (std::uint64_t point = 2; point <= 900; ++point) {
    Ticket& ticket = open({});
    close(ticket, point, point - 1);
    ticket.note_ran(StreamRole::kCompute, {.device_time = std::chrono::seconds(1)});
    rules.settle({std::max<std::uint64_t>(point, 4) - 3});
  }
  ASSERT_EQ(rules.ledger().submitted(), 3U);
  EXPECT_EQ(rules.control().statistics().margin, std::chrono::seconds(1))
      << "nothing was ever queued behind what ran";
}

TEST(AdmissionRules, TheTargetCoversTheLongestCopyOfABatchInTheLine) {
  AdmissionRules rules{RunAhead{}};
  std::uint64_t point = 0;
  const auto run = [&](std::string_view kind, std::uint64_t producer, milliseconds copy) {
    Applicant batch;
    rules.join(batch, kind, producer, kPressure);
    Ticket& ticket = rules.admit(batch, mib(1), kPressure);
    ticket.touched = {true};
    rules.close(ticket, {Point{.stream = StreamId{1}, .sequence = ++point}}, true, {});
    ticket.note_ran(StreamRole::kCopyIn, {.device_time = copy});
    ticket.note_ran(StreamRole::kCompute, {.device_time = 5 * copy});
    rules.settle({point});
  };
  run("small", 1, milliseconds(1));
  run("large", 2, milliseconds(10));
  Applicant small;
  rules.join(small, "small", 1, kPressure);
  EXPECT_EQ(rules.state_of(small, false, kPressure).copy, milliseconds(1));
  Applicant large;
  rules.join(large, "large", 2, kPressure);
  EXPECT_EQ(rules.state_of(small, false, kPressure).copy, milliseconds(10))
      << "its queue hides the copy of the next";
  (void)rules.admit(small, mib(1), kPressure);
  EXPECT_EQ(rules.control().statistics().target, milliseconds(10));
  rules.line().leave(large);
}

TEST(AdmissionRules, QueueThatHidesItsCopyIsNotUnused) {
  for (const bool copies : {false, true}) {
    AdmissionRules rules{RunAhead{}};
    std::uint64_t point = 0;
    const auto submit = [&](milliseconds held_back) -> Ticket& {
      Applicant batch;
      batch.held_back = held_back;
      rules.join(batch, "train", 1, kPressure);
      Ticket& ticket = rules.admit(batch, mib(1), kPressure);
      ticket.touched = {true};
      rules.close(ticket, {Point{.stream = StreamId{1}, .sequence = ++point}}, true, {});
      return ticket;
    };
    milliseconds now(100);
    const auto settle = [&](Ticket& ticket, milliseconds gap) {
      now += milliseconds(10);
      ticket.note_ran(StreamRole::kCopyIn, {.device_time = milliseconds(copies ? 10 : 0),
                                            .gap = gap,
                                            .starved = gap,
                                            .end = at(now)});
      ticket.note_ran(StreamRole::kCompute, {.device_time = milliseconds(10),
                                             .gap = gap,
                                             .starved = gap,
                                             .end = at(now + milliseconds(10))});
      rules.settle({point - 2});
    };
    std::deque<Ticket*> queue;
    for (int i = 0; i < 3; ++i) queue.push_back(&submit(milliseconds(10)));
    for (int i = 0; i < 2'000; ++i) {
      settle(*queue.front(), milliseconds(i == 0 ? 10 : 0));
      if (i == 0) {
        ASSERT_EQ(rules.control().statistics().margin, milliseconds(10));
      }
      queue.pop_front();
      queue.push_back(&submit({}));
    }
    EXPECT_EQ(rules.control().statistics().margin == milliseconds(10), copies)
        << "one batch of 10 ms was always queued behind the running one";
  }
}

TEST(AdmissionRules, OnlyABatchThatWasDeliveredTellsHowLongThatTakes) {
  using Time = AdmissionRules::Time;
  const auto lead_of = [](bool learn, const auto& meanwhile) {
    AdmissionRules rules{RunAhead{}};
    Applicant batch;
    batch.released = Time(milliseconds(1));
    rules.join(batch, "train", 1, kPressure);
    Ticket& ticket = rules.admit(batch, mib(1), kPressure);
    meanwhile(rules.ledger(), TicketRef{&ticket, ticket.serial});
    rules.close(ticket, {}, learn, Time(milliseconds(8)));
    return rules.control().statistics().lead;
  };
  const auto nothing = [](Ledger&, TicketRef) {};
  EXPECT_EQ(lead_of(true, nothing), milliseconds(7));
  EXPECT_EQ(lead_of(false, nothing), milliseconds(0)) << "abandoned";
  const auto waits = [](Ledger& ledger, TicketRef batch) { ledger.note_waited(batch); };
  EXPECT_EQ(lead_of(true, waits), milliseconds(0)) << "an allocation waited, and failed";
  const auto reads = [](Ledger& ledger, TicketRef batch) { ledger.note_synchronized(batch); };
  EXPECT_EQ(lead_of(true, reads), milliseconds(0)) << "it waited for the queue itself";
}

}  // namespace
}  // namespace weir
