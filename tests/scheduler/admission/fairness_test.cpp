// Producers of different batches share the device's bytes: the real line, ledger and decision, on a
// host and a device whose time is counted in steps. No threads, so each run is the same. The last
// test checks that admission uses them.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/fair_line.hpp"
#include "scheduler/admission/ledger.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/rig.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

constexpr Bytes kStepBytes = kib(256);  ///< the device's work in one step

struct ProducerOptions {
  std::vector<Bytes> batches;  ///< what its batches hold, again and again
  int host_steps = 1;          ///< to submit a batch
  std::optional<Bytes> hint{};
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
      : budget_(budget), run_ahead_(run_ahead), producers_(producers.size()) {
    for (std::size_t i = 0; i < producers.size(); ++i) producers_[i].options = producers[i];
    for (Producer& producer : producers_) join(producer);
  }

  /// Bytes of each producer's batches that the device ran in `steps`.
  std::vector<double> run(int steps) {
    for (int step = 0; step < steps; ++step) {
      work();
      for (Producer& producer : producers_) submit(producer);
      admit();
    }
    std::vector<double> shares;
    for (const Producer& producer : producers_) {
      shares.push_back(static_cast<double>(producer.done.count));
    }
    return shares;
  }

 private:
  struct Producer {
    ProducerOptions options;
    FairLine::Place place;
    Ticket* open = nullptr;
    int steps_left = 0;
    std::size_t submitted = 0;
    Bytes done;
  };
  struct Queued {
    Producer* producer;
    Bytes held;
    Bytes left;  ///< to be worked off
  };

  [[nodiscard]] std::uint64_t id_of(const Producer& producer) const {
    return static_cast<std::uint64_t>(&producer - producers_.data()) + 1;
  }
  BatchKind& kind_of(const Producer& producer) {
    return ledger_.kind(std::to_string(id_of(producer)));
  }
  [[nodiscard]] Bytes estimate(Producer& producer) {
    return ledger_.expected(kind_of(producer), producer.options.hint).value_or(budget_);
  }
  void join(Producer& producer) { line_.join(producer.place, id_of(producer), estimate(producer)); }

  void work() {
    Bytes power = kStepBytes;
    while (!queue_.empty() && power.count != 0) {
      Queued& first = queue_.front();
      const Bytes done = std::min(power, first.left);
      power -= done;
      first.left -= done;
      if (first.left.count != 0) return;
      first.producer->done += first.held;
      held_ -= first.held;
      queue_.pop_front();
      (void)ledger_.settle({++passed_});
    }
  }

  void submit(Producer& producer) {
    if (producer.open == nullptr) return;
    producer.steps_left = std::max(producer.steps_left - 1, 0);
    if (producer.steps_left != 0) return;
    Ticket& ticket = *producer.open;
    const TicketRef ref{&ticket, ticket.serial};
    const auto& batches = producer.options.batches;
    const Bytes bytes = batches.at(producer.submitted % batches.size());
    if (held_ + bytes > budget_) return;  // its allocation waits for submitted work
    ++producer.submitted;
    ledger_.note_allocated(ref, bytes);
    held_ += bytes;
    ledger_.note_freed(ref, bytes, true);
    ticket.touched = {true};
    ledger_.close(ticket, {Point{.stream = StreamId{1}, .sequence = ++closed_}}, true);
    line_.correct(ticket.producer, ticket.estimate, ticket.peak);
    queue_.push_back({&producer, bytes, bytes});
    producer.open = nullptr;
    join(producer);
  }

  /// Lets the first in line ask until somebody is not admitted.
  void admit() {
    for (;;) {
      const auto first = std::ranges::find_if(producers_, [this](const Producer& producer) {
        return producer.open == nullptr && line_.is_first(producer.place);
      });
      if (first == producers_.end()) return;
      const AdmissionState state{.yields = line_.yields(first->place),
                                 .held = held_,
                                 .budget = budget_,
                                 .unspent = ledger_.unspent(),
                                 .estimate = estimate(*first),
                                 .open = ledger_.open_count(),
                                 .submitted = ledger_.submitted(),
                                 .queued = ledger_.queued_behind()};
      if (decide(state, run_ahead_) != Decision::kAdmit) return;
      first->open = &ledger_.open(kind_of(*first), state.estimate);
      first->open->producer = first->place.producer;
      first->place.bytes = state.estimate;
      line_.serve(first->place);
      first->steps_left = first->options.host_steps;
    }
  }

  const Bytes budget_;
  const RunAhead run_ahead_;
  std::vector<Producer> producers_;
  Ledger ledger_;
  FairLine line_;
  std::deque<Queued> queue_;
  Bytes held_;
  std::uint64_t closed_ = 0;
  std::uint64_t passed_ = 0;
};

/// Two producers of 1:10 in the bytes of a batch. Together they need 11 MiB at least.
constexpr Bytes kLeast = mib(11);
constexpr int kSteps = 4'000;
constexpr RunAhead kBytesAlone{.batches = std::nullopt};
constexpr RunAhead kTwoBatches{.batches = 2, .time = std::chrono::nanoseconds(-1)};

void expect_shared(Bytes budget, const std::vector<ProducerOptions>& producers,
                   const RunAhead& run_ahead) {
  SCOPED_TRACE(format_run_ahead(run_ahead) + ", " + format_bytes(budget));
  const std::vector<double> shares = SharedDevice(budget, producers, run_ahead).run(kSteps);
  EXPECT_GE(jain_index(shares), 0.95) << shares[0] << " and " << shares[1] << " bytes";
  // Without idling the device.
  EXPECT_GE(shares[0] + shares[1], 0.97 * kSteps * static_cast<double>(kStepBytes.count));
}

TEST(Fairness, ProducersOfSmallAndLargeBatchesShareTheBytes) {
  // The device takes 4 steps for the small batch and 40 for the large one.
  for (const std::uint64_t room : {4U, 16U}) {
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches}) {
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
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches}) {
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
    for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches}) {
      expect_shared(kLeast * room, {{.batches = uneven}, {.batches = {mib(2)}}}, run_ahead);
    }
  }
}

TEST(Fairness, AProducerThatItsOwnHostHoldsBackHoldsNobodyElseBack) {
  constexpr double kAll = kSteps * static_cast<double>(kStepBytes.count);
  for (const RunAhead& run_ahead : {kBytesAlone, kTwoBatches}) {
    SCOPED_TRACE(format_run_ahead(run_ahead));
    // Its batch is open all the time.
    const std::vector<double> shares =
        SharedDevice(kLeast * 4,
                     {{.batches = {mib(1)}, .host_steps = kSteps * 2, .hint = mib(1)},
                      {.batches = {mib(10)}, .hint = mib(10)}},
                     run_ahead)
            .run(kSteps);
    EXPECT_GE(shares[1], 0.97 * kAll);
  }
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

}  // namespace
}  // namespace weir
