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

/// What a task ran, in milliseconds.
struct Ran {
  int took = 0;
  int gap = 0;
  int starved = 0;
  int end = 0;

  operator TaskTime() const {  // NOLINT(google-explicit-constructor): stands for it
    return {.device_time = milliseconds(took),
            .gap = milliseconds(gap),
            .starved = milliseconds(starved),
            .end = AdmissionRules::Time(milliseconds(end))};
  }
};

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

struct IdleCase {
  const char* what;
  Ran copy;
  Ran compute;
  int caused;
};

// In milliseconds: how long it took, its gap, in which it was starved, and its end.
constexpr std::array kIdleCases{
    IdleCase{"the busiest stream's gap is ours if the other had nothing to do either",
             {1, 0, 5, 7},
             {2, 3, 2, 9},
             3},
    IdleCase{"the compute was enqueued in time, and waited for a copy that came late",
             {1, 4, 4, 7},
             {2, 3, 0, 9},
             3},
    IdleCase{"the copy had come in time: the device's own gap", {1, 4, 4, 5}, {2, 1, 0, 9}, 0},
    IdleCase{"it needs no copy: the device's own gap", {}, {2, 1, 0, 9}, 0},
    IdleCase{"nor can it have waited for what began after it, such as a copy to the host",
             {1, 4, 4, 10},
             {2, 1, 0, 9},
             0},
    IdleCase{"the copies ran without a pause", {1, 4, 0, 7}, {2, 3, 0, 9}, 0},
    IdleCase{"copies are the busiest, which in the third waited for memory that was handed over",
             {5, 3, 2, 8},
             {1, 0, 0, 9},
             2},
    IdleCase{"a stream that the batch does not use has no say", {}, {2, 3, 3, 9}, 3},
    IdleCase{"the gap of a stream that is not the busiest", {1, 9, 0, 0}, {2, 0, 0, 0}, 0},
};

TEST(AdmissionRules, IdleTimeIsOursWhereTheBusiestStreamLackedWhatWeHeldBack) {
  for (const IdleCase& each : kIdleCases) {
    EXPECT_EQ(HeldBackRun().caused(each.copy, each.compute), milliseconds(each.caused))
        << each.what;
  }
}

TEST(AdmissionRules, TheDevicesOwnGapsDoNotRaiseTheTarget) {
  HeldBackRun run;
  for (int i = 0; i < 1000; ++i) {
    TaskTime compute = Ran{.took = 2, .end = 10 + 2 * i};
    compute.gap = std::chrono::microseconds(5);
    (void)run.caused({}, compute);
  }
  EXPECT_EQ(run.most_target(), milliseconds(0));
}

TEST(AdmissionRules, ACopyCouldHaveEndedEarlierByThePausesBeforeIt) {
  HeldBackRun run;
  const auto batch = [&](int copied, int starved, int gap) {
    return run.caused(Ran{.took = 1, .gap = starved, .starved = starved, .end = copied},
                      Ran{.took = 2, .gap = gap, .end = copied + 2});
  };
  EXPECT_EQ(batch(5, 3, 0), milliseconds(0)) << "late, but not too late";
  EXPECT_EQ(batch(8, 1, 3), milliseconds(3)) << "the copy before it was late, too";
  EXPECT_EQ(batch(11, 0, 3), milliseconds(1)) << "4 ms of pauses in all";
  EXPECT_EQ(batch(14, 0, 3), milliseconds(0)) << "the copies run without a pause";
}

TEST(AdmissionRules, AGapInWhichAnotherComputeStreamRanIsNotOursAndOneOfACopyToTheHostIs) {
  HeldBackRun collective;
  (void)collective.caused({}, Ran{.took = 2, .end = 10}, Ran{.took = 6, .end = 14});
  EXPECT_EQ(collective.caused({}, Ran{.took = 2, .gap = 5, .starved = 1, .end = 17}),
            milliseconds(1))
      << "idle from 10 to 15, and the collective ran until 14";
  HeldBackRun copied;
  (void)copied.caused({}, Ran{.took = 2, .end = 10}, Ran{.took = 6, .end = 16},
                      StreamRole::kCopyOut);
  EXPECT_EQ(copied.caused({}, Ran{.took = 2, .gap = 5, .starved = 5, .end = 17}), milliseconds(5))
      << "the compute did not wait for the copy of the batch before";
}

TEST(AdmissionRules, ABatchWithALongCopyDelaysTheStreamThatIsBusyOtherwise) {
  HeldBackRun run;
  for (int i = 0; i < 20; ++i) {
    (void)run.caused(Ran{.took = 1, .end = 2 * i + 1}, Ran{.took = 2, .end = 2 * i + 3});
  }
  EXPECT_EQ(run.caused(Ran{.took = 8, .gap = 5, .starved = 5, .end = 49},
                       Ran{.took = 2, .gap = 3, .end = 51}),
            milliseconds(3))
      << "the computes stood for 3 ms, and the copy could have begun 5 ms earlier";
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

/// Batches of one stream, with the points at which it passes them.
class Driven {
 public:
  Ticket& admit(std::string_view kind, std::chrono::nanoseconds held_back = {},
                std::uint64_t producer = 1) {
    Applicant batch;
    batch.held_back = held_back;
    rules.join(batch, kind, producer, kPressure);
    return rules.admit(batch, mib(1), kPressure);
  }
  /// Closes it at the next point, with the device at `passed`.
  void close(Ticket& ticket, std::uint64_t passed = 0) {
    ticket.touched = {true};
    rules.close(ticket, {Point{.stream = StreamId{1}, .sequence = ++point}}, true, {}, {passed});
  }
  [[nodiscard]] std::chrono::nanoseconds margin() const {
    return rules.control().statistics().margin;
  }

  AdmissionRules rules{RunAhead{}};
  std::uint64_t point = 0;
};

TEST(AdmissionRules, WhatTheDeviceHasRunIsNoUnusedQueueAlsoBeforeItIsSettled) {
  constexpr std::chrono::seconds kSecond{1};
  Driven driven;
  // Caused idle of 1 s, so that a window ends after 256 batches of 1 s.
  Ticket& first = driven.admit("train", kSecond);
  driven.close(first);
  first.note_ran(StreamRole::kCopyIn, {.device_time = kSecond, .gap = kSecond, .starved = kSecond});
  driven.rules.settle({1});
  ASSERT_EQ(driven.margin(), kSecond);
  // The device has run each before the next one is closed, and the last three are never settled.
  // More than two windows: in the first there is a close with no batch submitted.
  for (std::uint64_t point = 2; point <= 900; ++point) {
    Ticket& ticket = driven.admit("train");
    driven.close(ticket, point - 1);
    ticket.note_ran(StreamRole::kCompute, {.device_time = kSecond});
    driven.rules.settle({std::max<std::uint64_t>(point, 4) - 3});
  }
  ASSERT_EQ(driven.rules.ledger().submitted(), 3U);
  EXPECT_EQ(driven.margin(), kSecond) << "nothing was ever queued behind what ran";
}

TEST(AdmissionRules, TheTargetCoversTheLongestCopyOfABatchInTheLine) {
  Driven driven;
  AdmissionRules& rules = driven.rules;
  const auto run = [&](std::string_view kind, std::uint64_t producer, milliseconds copy) {
    Ticket& ticket = driven.admit(kind, {}, producer);
    driven.close(ticket);
    ticket.note_ran(StreamRole::kCopyIn, {.device_time = copy});
    ticket.note_ran(StreamRole::kCompute, {.device_time = 5 * copy});
    rules.settle({driven.point});
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
    Driven driven;
    std::deque<Ticket*> queue;
    const auto submit = [&](milliseconds held_back) {
      queue.push_back(&driven.admit("train", held_back));
      driven.close(*queue.back());
    };
    for (int i = 0; i < 3; ++i) submit(milliseconds(10));
    for (int i = 0; i < 2'000; ++i) {
      const int gap = i == 0 ? 10 : 0;
      const int now = 110 + 10 * i;
      queue.front()->note_ran(StreamRole::kCopyIn,
                              Ran{.took = copies ? 10 : 0, .gap = gap, .starved = gap, .end = now});
      queue.front()->note_ran(StreamRole::kCompute,
                              Ran{.took = 10, .gap = gap, .starved = gap, .end = now + 10});
      driven.rules.settle({driven.point - 2});
      if (i == 0) {
        ASSERT_EQ(driven.margin(), milliseconds(10));
      }
      queue.pop_front();
      submit({});
    }
    EXPECT_EQ(driven.margin() == milliseconds(10), copies)
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
