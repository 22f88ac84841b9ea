// Producers of different batches share the device: the real rules, on a host and a device whose
// time is counted in steps. No threads, so each run is the same. The last tests check that
// admission uses them.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/admission/admission_rules.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/rig.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

constexpr Bytes kStepBytes = kib(256);             ///< the device's work in one step
constexpr std::chrono::milliseconds kStepTime{1};  ///< that the rules are told

struct ProducerOptions {
  std::vector<Bytes> batches;  ///< what its batches hold, again and again
  int host_steps = 1;          ///< to submit a batch
  int away_steps = 0;          ///< to load the next one
  std::optional<Bytes> hint{};
  std::optional<Bytes> work{};  ///< the device's work for a batch; as much as it holds if unset
  std::uint32_t weight = 1;
};

/// What the device did for one producer.
struct Served {
  double bytes = 0;  ///< that its batches held
  double work = 0;   ///< in bytes too: kStepBytes take a step
};

/// Jain, Chiu, Hawe 1984: 1 if all have the same, 1/n if one has everything.
double jain_index(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double squares = std::inner_product(shares.begin(), shares.end(), shares.begin(), 0.0);
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

/// One device that runs batches in the order of their closing, and producers that always have
/// another batch.
class SharedDevice {
 public:
  SharedDevice(Bytes budget, const std::vector<ProducerOptions>& producers, RunAhead run_ahead)
      : budget_(budget), rules_(run_ahead), producers_(producers.size()) {
    for (std::size_t i = 0; i < producers.size(); ++i) producers_[i].options = producers[i];
    for (Producer& producer : producers_) join(producer);
  }
  SharedDevice(const SharedDevice&) = delete;  // the rules know where the places are
  SharedDevice& operator=(const SharedDevice&) = delete;

  /// Returns what the device did for each producer in `steps`.
  std::vector<Served> run(int steps) {
    for (int step = 0; step < steps; ++step) {
      work();
      for (Producer& producer : producers_) submit(producer);
      admit();
    }
    std::vector<Served> served;
    for (const Producer& producer : producers_) served.push_back(producer.served);
    return served;
  }

 private:
  struct Producer {
    ProducerOptions options;
    Applicant place;
    Ticket* open = nullptr;
    int steps_left = 0;
    bool is_away = false;
    std::size_t submitted = 0;
    Served served;
  };
  struct Queued {
    Producer* producer;
    Ticket* ticket;
    Bytes held;
    Bytes work;
    Bytes left;  ///< of the work
  };

  [[nodiscard]] Pressure pressure() const {
    return {.held = held_, .budget = budget_, .awaiting = awaiting_};
  }
  void join(Producer& producer) {
    const std::uint64_t id = static_cast<std::uint64_t>(&producer - producers_.data()) + 1;
    producer.place = {};
    producer.place.hint = producer.options.hint;
    rules_.join(producer.place, std::to_string(id), id, pressure(), producer.options.weight);
  }

  void work() {
    Bytes power = kStepBytes;
    while (!queue_.empty() && power.count != 0) {
      Queued& first = queue_.front();
      const Bytes done = std::min(power, first.left);
      power -= done;
      first.left -= done;
      if (first.left.count != 0) return;
      first.producer->served.bytes += static_cast<double>(first.held.count);
      first.producer->served.work += static_cast<double>(first.work.count);
      held_ -= first.held;
      awaiting_ -= first.held;
      const auto steps = (first.work.count + kStepBytes.count - 1) / kStepBytes.count;
      first.ticket->note_ran(StreamRole::kCompute,
                             {.device_time = kStepTime * static_cast<int>(steps)});
      queue_.pop_front();
      rules_.settle({++passed_});
    }
  }

  void submit(Producer& producer) {
    if (producer.open == nullptr && !producer.is_away) return;
    producer.steps_left = std::max(producer.steps_left - 1, 0);
    if (producer.steps_left != 0) return;
    if (std::exchange(producer.is_away, false)) return join(producer);
    Ticket& ticket = *producer.open;
    const TicketRef ref{&ticket, ticket.serial};
    const auto& batches = producer.options.batches;
    const Bytes bytes = batches.at(producer.submitted % batches.size());
    if (held_ + bytes > budget_) return;  // its allocation waits for submitted work
    ++producer.submitted;
    rules_.ledger().note_allocated(ref, bytes);
    held_ += bytes;
    awaiting_ += bytes;
    rules_.ledger().note_freed(ref, bytes, true);
    ticket.touched = {true};
    rules_.close(ticket, {Point{.stream = StreamId{1}, .sequence = ++closed_}}, true, {});
    const Bytes to_do = producer.options.work.value_or(bytes);
    queue_.push_back({&producer, &ticket, bytes, to_do, to_do});
    producer.open = nullptr;
    producer.steps_left = producer.options.away_steps;
    producer.is_away = producer.steps_left != 0;
    if (!producer.is_away) join(producer);
  }

  /// Lets the first in line ask until somebody is not admitted.
  void admit() {
    for (;;) {
      const auto first = std::ranges::find_if(producers_, [this](const Producer& producer) {
        return rules_.first() == &producer.place;
      });
      if (first == producers_.end()) return;
      const AdmissionState state = rules_.state_of(first->place, false, pressure());
      const Decision decision = rules_.decide(state);
      if (decision != Decision::kAdmit) {
        first->place.yielded_to =
            decision == Decision::kWaitShare ? rules_.yields_to(first->place) : 0;
        return;
      }
      first->open = &rules_.admit(first->place, state.estimate, pressure());
      first->steps_left = first->options.host_steps;
    }
  }

  const Bytes budget_;
  AdmissionRules rules_;
  std::vector<Producer> producers_;
  std::deque<Queued> queue_;
  Bytes held_;
  Bytes awaiting_;
  std::uint64_t closed_ = 0;
  std::uint64_t passed_ = 0;
};

/// Two producers of 1:10 in the bytes of a batch. Together they need 11 MiB at least.
constexpr Bytes kLeast = mib(11);
constexpr int kSteps = 4'000;
constexpr RunAhead kBytesAlone{.batches = std::nullopt};
constexpr RunAhead kTwoBatches{.batches = 2, .time = std::chrono::nanoseconds(0)};
constexpr RunAhead kOneBatch{.batches = 1, .time = std::chrono::nanoseconds(0)};
constexpr RunAhead kTwentySteps{.batches = 1, .time = 20 * kStepTime};
constexpr double kAllWork = kSteps * static_cast<double>(kStepBytes.count);

double sum_of_work(const std::vector<Served>& served) {
  return std::accumulate(served.begin(), served.end(), 0.0,
                         [](double sum, const Served& one) { return sum + one.work; });
}

void expect_shared(Bytes budget, const std::vector<ProducerOptions>& producers,
                   const RunAhead& run_ahead) {
  SCOPED_TRACE(format_run_ahead(run_ahead) + ", " + format_bytes(budget));
  const std::vector<Served> served = SharedDevice(budget, producers, run_ahead).run(kSteps);
  EXPECT_GE(jain_index({served[0].bytes, served[1].bytes}), 0.95)
      << served[0].bytes << " and " << served[1].bytes << " bytes";
  EXPECT_GE(sum_of_work(served), 0.97 * kAllWork) << "without idling the device";
}

TEST(Fairness, ProducersOfSmallAndLargeBatchesShareTheBytes) {
  // The device takes 4 steps for the small batch and 40 for the large one.
  for (const std::uint64_t room : {4U, 16U}) {
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches, kTwentySteps}) {
      for (const int small : {1, 3}) {
        for (const int large : {1, 3, 10}) {
          SCOPED_TRACE(std::to_string(small) + " and " + std::to_string(large) + " host steps");
          expect_shared(kLeast * room,
                        {{.batches = {mib(1)}, .host_steps = small},
                         {.batches = {mib(10)}, .host_steps = large}},
                        run_ahead);
        }
      }
    }
  }
}

TEST(Fairness, WrongHintsChangeNoShare) {
  for (const std::uint64_t room : {4U, 16U}) {
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches, kTwentySteps}) {
      expect_shared(kLeast * room, {{.batches = {mib(1)}, .hint = mib(10)}, {.batches = {mib(10)}}},
                    run_ahead);
      expect_shared(kLeast * room, {{.batches = {mib(1)}}, {.batches = {mib(10)}, .hint = kib(1)}},
                    run_ahead);
    }
  }
}

TEST(Fairness, WhatABatchHeldCountsAndNotWhatWasExpectedOfIt) {
  // One batch of ten is large, and each is expected to be nearly that large.
  std::vector<Bytes> uneven(10, mib(1));
  uneven.front() = mib(10);
  for (const std::uint64_t room : {4U, 16U}) {
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches, kTwentySteps}) {
      expect_shared(kLeast * room, {{.batches = uneven}, {.batches = {mib(2)}}}, run_ahead);
    }
  }
}

TEST(Fairness, AProducerThatItsOwnHostHoldsBackHoldsNobodyElseBack) {
  for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches, kTwentySteps}) {
    SCOPED_TRACE(format_run_ahead(run_ahead));
    // Its batch is open all the time.
    const std::vector<Served> served =
        SharedDevice(kLeast * 4,
                     {{.batches = {mib(1)}, .host_steps = kSteps * 2, .hint = mib(1)},
                      {.batches = {mib(10)}, .hint = mib(10)}},
                     run_ahead)
            .run(kSteps);
    EXPECT_GE(served[1].work, 0.97 * kAllWork);
  }
}

TEST(Fairness, ATurnIsNotKeptForOneWhoseReturnTheDeviceWouldIdleFor) {
  // The small one loads for longer than it computes, and cannot have half of the bytes. Batches of
  // the large one take ten steps on the host, in which the device must not be idle. (A target of
  // two batches idles it if one of them is a small one.)
  for (const int away : {8, 16, 30}) {
    for (const RunAhead& run_ahead : {kBytesAlone, kTwentySteps}) {
      SCOPED_TRACE(format_run_ahead(run_ahead) + ", " + std::to_string(away));
      const std::vector<Served> served =
          SharedDevice(kLeast * 4,
                       {{.batches = {mib(1)}, .host_steps = 1, .away_steps = away},
                        {.batches = {mib(10)}, .host_steps = 10}},
                       run_ahead)
              .run(kSteps);
      EXPECT_GE(sum_of_work(served), 0.97 * kAllWork);
    }
  }
}

TEST(Fairness, AWeightOfThreeGetsThreeTimesTheBytes) {
  for (const std::uint64_t room : {4U, 16U}) {
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches, kTwentySteps}) {
      for (const Bytes& large : {mib(1), mib(10)}) {
        SCOPED_TRACE(format_run_ahead(run_ahead) + ", " + format_bytes(large));
        const std::vector<Served> served =
            SharedDevice(kLeast * room, {{.batches = {mib(1)}, .weight = 3}, {.batches = {large}}},
                         run_ahead)
                .run(kSteps);
        EXPECT_NEAR(served[0].bytes / served[1].bytes, 3, 0.3);
        EXPECT_GE(sum_of_work(served), 0.97 * kAllWork);
      }
    }
  }
}

/// Batches of equal work, of which those of the second producer hold ten times the bytes.
std::vector<Served> serve_equal_work(Bytes budget, const RunAhead& run_ahead,
                                     std::uint32_t first_weight = 1) {
  return SharedDevice(
             budget,
             {{.batches = {mib(1)}, .hint = mib(1), .work = mib(1), .weight = first_weight},
              {.batches = {mib(10)}, .hint = mib(10), .work = mib(1)}},
             run_ahead)
      .run(kSteps);
}

TEST(Fairness, AQueueThatIsFullOfWorkIsSharedByTime) {
  const std::vector<Served> served =
      serve_equal_work(kLeast * 64, {.batches = 1, .time = 100 * kStepTime});
  EXPECT_GE(jain_index({served[0].work, served[1].work}), 0.95);
  EXPECT_GE(sum_of_work(served), 0.97 * kAllWork);
  const std::vector<Served> weighted =
      serve_equal_work(kLeast * 128, {.batches = 1, .time = 400 * kStepTime}, 3);
  EXPECT_NEAR(weighted[0].work / weighted[1].work, 3, 0.3);
}

TEST(Fairness, AFullQueueIsSharedByTimeAlsoAmongThoseThatWaitAtTheSameTime) {
  // While one of the small ones submits, the other one waits, before the large one by bytes.
  const ProducerOptions small{.batches = {mib(1)}, .hint = mib(1), .work = mib(1)};
  const ProducerOptions large{.batches = {mib(10)}, .hint = mib(10), .work = mib(1)};
  const std::vector<Served> served =
      SharedDevice(kLeast * 64, {small, small, large}, {.batches = 1, .time = 100 * kStepTime})
          .run(kSteps);
  EXPECT_GE(jain_index({served[0].work, served[1].work, served[2].work}), 0.95)
      << served[0].work << " " << served[1].work << " " << served[2].work;
  EXPECT_GE(sum_of_work(served), 0.97 * kAllWork);
}

TEST(Fairness, BatchesThatHoldNothingStarveNobody) {
  const auto expect_turns = [](const ProducerOptions& empty, Bytes budget, const RunAhead& ahead) {
    SCOPED_TRACE(format_run_ahead(ahead) + ", " + format_bytes(budget) + ", " +
                 format_bytes(*empty.work));
    const std::vector<Served> served =
        SharedDevice(budget, {empty, {.batches = {mib(10)}, .host_steps = 3, .work = mib(1)}},
                     ahead)
            .run(kSteps);
    const double turns = served[0].work / static_cast<double>(empty.work->count);
    EXPECT_GE(served[1].work / static_cast<double>(mib(1).count), turns / 3);
  };
  for (const std::uint64_t room : {1U, 4U, 16U}) {
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches, kTwentySteps}) {
      for (const int host_steps : {1, 3}) {
        for (const Bytes& work : {kib(256), mib(1), mib(10)}) {
          expect_turns({.batches = {Bytes{}}, .host_steps = host_steps, .work = work},
                       kLeast * room, run_ahead);
        }
      }
    }
  }
}

TEST(Fairness, AQueueThatTheBudgetKeepsShortIsSharedByBytes) {
  const std::vector<Served> served =
      serve_equal_work(kLeast * 2, {.batches = 1, .time = 1000 * kStepTime});
  EXPECT_GE(jain_index({served[0].bytes, served[1].bytes}), 0.95);
  EXPECT_GE(sum_of_work(served), 0.97 * kAllWork);
}

TEST(Fairness, AdmissionKeepsTheTurnOfAProducerThatIsSubmitting) {
  testing::Rig rig({.run_ahead = kBytesAlone});
  rig.hold(StreamRole::kCompute);
  testing::WithoutWaiting batches(rig);
  const auto submit_large = [&] {
    const Batch batch = batches.begin("large", kib(64));
    (void)rig.filled(kib(64), 1);
  };
  for (int i = 0; i < 3; ++i) submit_large();
  std::promise<void> submitting;
  std::promise<void> end;
  auto other = std::async(std::launch::async, [&] {
    const Batch batch = rig->begin_batch("small", {.hint = kib(4)});
    submitting.set_value();
    end.get_future().wait();
  });
  submitting.get_future().wait();
  EXPECT_THROW(submit_large(), Cancelled) << "it did not wait, for the device";
  end.set_value();
  other.get();
  testing::WithoutWaiting again(rig);
  EXPECT_FALSE(again.begin("large", kib(64)).joined()) << "nobody is before it";
}

TEST(Fairness, AdmissionKeepsNoTurnOfAThreadThatHasEnded) {
  testing::Rig rig({.run_ahead = kBytesAlone});
  rig.hold(StreamRole::kCompute);
  testing::WithoutWaiting batches(rig);
  const auto submit = [&](std::string_view kind, Bytes bytes) {
    const Batch batch = batches.begin(kind, bytes);
    (void)rig.filled(bytes, 1);
  };
  for (int i = 0; i < 3; ++i) submit("large", kib(64));
  std::thread([&] {
    for (int i = 0; i < 2; ++i) submit("small", kib(4));  // the second time it is back soon
  }).join();
  EXPECT_NO_THROW(submit("large", kib(64))) << "it waited";
}

TEST(Fairness, ANewcomerWhoseHintIsAboveTheBudgetWaitsForOneBudgetOfOthers) {
  constexpr Pressure kRoom{.level = {}, .held = {}, .budget = mib(4), .awaiting = {}};
  AdmissionRules rules(kBytesAlone);
  const auto run = [&](Applicant& batch) {
    Ticket& ticket = rules.admit(batch, mib(1), kRoom, {}, 0);
    rules.ledger().note_allocated({.ticket = &ticket, .serial = ticket.serial}, mib(1));
    rules.close(ticket, {}, true, {}, {});
  };
  const auto ask = [&](Applicant& batch, std::uint64_t producer, Bytes hint) {
    batch.hint = hint;
    rules.join(batch, "batch", producer, kRoom);
  };
  Applicant own;
  ask(own, 1, mib(1));
  run(own);
  Applicant huge;
  ask(huge, 2, Bytes{UINT64_MAX});
  int before = 0;
  for (ask(own, 1, mib(1)); rules.first() == &own && before < 100; ask(own, 1, mib(1))) {
    run(own);
    ++before;
  }
  EXPECT_LE(before, 4);
}

constexpr int kNewcomerLoops = 4;

/// Returns how many batches of new threads are admitted while a batch of this thread stands in the
/// line; 100 at most. Four loops begin them, each one after the other.
///
/// `run` runs a batch beside which no other can be open, and calls its argument inside.
/// `before_wait` is called before a wait for the device. This thread's second batch has to wait
/// there, until the hook returns or `go_on` is called.
template <typename Run>
int admitted_before_own(const Run& run, std::function<void(Point)>& before_wait,
                        const std::function<void()>& go_on) {
  constexpr int kMost = 100;
  std::atomic<int> admitted = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> loops;
  const auto begin_on_new_threads = [&] {
    while (!stop && admitted < kMost) std::thread([&] { run([&] { ++admitted; }); }).join();
  };
  std::atomic_flag is_in_line;
  before_wait = [&](Point) {
    if (is_in_line.test_and_set()) return;
    for (int i = 0; i < kNewcomerLoops; ++i) loops.emplace_back(begin_on_new_threads);
    testing::give_others_a_chance();
    go_on();
  };
  run([] {});
  int before = 0;
  run([&] { before = admitted; });
  stop = true;
  for (std::thread& loop : loops) loop.join();
  before_wait = nullptr;
  return before;
}

TEST(Fairness, AThreadThatWaitsIsNotOvertakenByMoreAndMoreNewThreads) {
  testing::Rig rig({.budget = kib(64), .run_ahead = kOneBatch, .grace = std::chrono::hours(1)});
  testing::Gate& gate = rig.hold(StreamRole::kCompute);
  const int before = admitted_before_own(
      [&](const auto& inside) {
        const Batch batch = rig->begin_batch("all", {.hint = kib(64)});
        inside();
        (void)rig.filled(kib(64), 1);
      },
      rig.backend.before_wait, [&] { gate.open(); });
  EXPECT_LE(before, kNewcomerLoops);
}

}  // namespace
}  // namespace weir
