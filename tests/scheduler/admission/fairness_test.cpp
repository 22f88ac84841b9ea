// Producers of different batches share the device: the real rules, on a host and a device whose
// time is counted in steps. No threads, so each run is the same. The last tests check that
// admission uses them.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
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
  Bytes batch{};       ///< what each of its batches holds
  int host_steps = 1;  ///< to submit a batch
  int away_steps = 0;  ///< to load the next one
  std::optional<Bytes> hint{};
  std::optional<Bytes> work{};  ///< the device's work for a batch; as much as it holds if unset
  std::uint32_t weight = 1;
  bool returns = true;  ///< otherwise each batch is a newcomer's, of a kind of its own
};

/// What the device did for one producer.
struct Served {
  double share = 0;  ///< bytes that its batches held, over the weight
  double work = 0;   ///< in bytes too: kStepBytes take a step
  double batches = 0;
};

/// Jain, Chiu, Hawe 1984: 1 if all have the same, 1/n if one has everything.
double jain_index(const std::vector<Served>& served) {
  double sum = 0;
  double squares = 0;
  for (const Served& one : served) {
    sum += one.share;
    squares += one.share * one.share;
  }
  return sum * sum / (static_cast<double>(served.size()) * squares);
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
    for (Producer& producer : producers_) producer.served = {};
    for (int step = 0; step < steps; ++step) {
      now_ += kStepTime;
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
    std::uint64_t number = 0;
    Applicant place;
    Ticket* open = nullptr;
    int steps_left = 0;
    bool is_away = false;
    Served served;
  };
  struct Queued {
    Producer* producer;
    Ticket* ticket;
    Bytes left;  ///< of the work
  };

  [[nodiscard]] Pressure pressure() const {
    return {.held = held_, .budget = budget_, .awaiting = held_};
  }
  void join(Producer& producer) {
    const ProducerOptions& options = producer.options;
    if (!options.returns || producer.number == 0) producer.number = ++numbers_;
    producer.place = {};
    producer.place.hint = options.hint;
    rules_.apply(producer.place, "of " + std::to_string(producer.number), producer.number);
    producer.place.weight = options.weight;
    rules_.line_up(producer.place, pressure());
  }

  static Bytes work_of(const ProducerOptions& options) {
    return options.work.value_or(options.batch);
  }
  void work() {
    if (queue_.empty()) idle_ += kStepTime;
    Bytes power = kStepBytes;
    while (!queue_.empty() && power.count != 0) {
      Queued& first = queue_.front();
      const Bytes done = std::min(power, first.left);
      power -= done;
      first.left -= done;
      if (first.left.count != 0) return;
      const ProducerOptions& options = first.producer->options;
      const Bytes whole = work_of(options);
      Served& served = first.producer->served;
      served.share += static_cast<double>(options.batch.count) / options.weight;
      served.work += static_cast<double>(whole.count);
      ++served.batches;
      held_ -= options.batch;
      const auto steps = (whole.count + kStepBytes.count - 1) / kStepBytes.count;
      first.ticket->note_ran(StreamRole::kCompute,
                             {.device_time = kStepTime * static_cast<int>(steps),
                              .gap = idle_,
                              .starved = std::exchange(idle_, {}),
                              .end = std::chrono::steady_clock::time_point(now_)});
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
    const Bytes bytes = producer.options.batch;
    if (held_ + bytes > budget_) return;  // its allocation waits for submitted work
    rules_.ledger().note_allocated(ref, bytes);
    held_ += bytes;
    rules_.ledger().note_freed(ref, bytes, true);
    ticket.touched = {StreamRole::kCompute};
    ticket.points.front() = {.stream = StreamId{1}, .sequence = ++closed_};
    rules_.close(ticket, true, {passed_});
    queue_.push_back({&producer, &ticket, work_of(producer.options)});
    producer.open = nullptr;
    producer.steps_left = producer.options.away_steps;
    producer.is_away = producer.steps_left != 0;
    if (!producer.is_away) join(producer);
  }

  /// Lets the first in line ask until somebody is not admitted.
  void admit() {
    while (Applicant* const first = rules_.first()) {
      const AdmissionState state = rules_.state_of(*first, false, pressure());
      const Decision decision =
          first == gives_way_ && now_ < until_ ? Decision::kWaitShare : rules_.decide(state);
      if (decision == Decision::kWaitShare && first != std::exchange(gives_way_, first)) {
        rules_.give_way(*first);
        until_ = now_ + rules_.patience(state);
      }
      if (decision != Decision::kAdmit) return first->note_waited(decision, kStepTime);
      Producer& producer =
          *std::ranges::find(producers_, first, [](const Producer& other) { return &other.place; });
      producer.open = &rules_.admit(*first, state.estimate, pressure());
      producer.steps_left = producer.options.host_steps;
      if (first->waited_for_room) rules_.note_waited_for_memory();
      gives_way_ = nullptr;
    }
  }

  const Bytes budget_;
  AdmissionRules rules_;
  std::vector<Producer> producers_;
  std::deque<Queued> queue_;
  Bytes held_;
  std::chrono::nanoseconds now_ = std::chrono::hours(1);
  const Applicant* gives_way_ = nullptr;  ///< Decision::kWaitShare, until then
  std::chrono::nanoseconds until_{};
  std::chrono::nanoseconds idle_{};
  std::uint64_t numbers_ = 0;  ///< of producers
  std::uint64_t closed_ = 0;
  std::uint64_t passed_ = 0;
};

constexpr int kSteps = 3'000;
constexpr double kAllWork = kSteps * static_cast<double>(kStepBytes.count);
constexpr RunAhead kBytesAlone{.batches = std::nullopt};
constexpr RunAhead kOneBatch{.batches = 1, .time = std::chrono::nanoseconds(0)};
constexpr RunAhead kTwoBatches{.batches = 2, .time = std::chrono::nanoseconds(0)};
constexpr RunAhead kTwentySteps{.batches = 1, .time = 20 * kStepTime};
constexpr RunAhead kAdapts{};

/// Calls `check` with what each producer was served once its kind is known. The device must not be
/// idle meanwhile.
template <typename Check>
void serve(Bytes budget, const std::vector<ProducerOptions>& producers, const RunAhead& run_ahead,
           const Check& check) {
  std::string trace = format_run_ahead(run_ahead) + " in " + format_bytes(budget) + ":";
  for (const ProducerOptions& one : producers) {
    trace += " " + std::to_string(one.host_steps) + " steps for " + format_bytes(one.batch);
  }
  SCOPED_TRACE(trace);
  SharedDevice device(budget, producers, run_ahead);
  (void)device.run(kSteps);
  const std::vector<Served> served = device.run(kSteps);
  double work = 0;
  for (const Served& one : served) work += one.work;
  EXPECT_GE(work, 0.97 * kAllWork) << "it idled the device";
  check(served);
}

/// Batches of 1 and 10 MiB take the device 4 and 40 steps. The first producer stays.
std::vector<std::vector<ProducerOptions>> mixes(int small_steps, int large_steps) {
  const ProducerOptions small{.batch = mib(1), .host_steps = small_steps};
  const ProducerOptions large{.batch = mib(10), .host_steps = large_steps};
  const auto with = [](ProducerOptions options, const auto& change) {
    change(options);
    return options;
  };
  const auto triple = [](ProducerOptions& options) { options.weight = 3; };
  const auto little_work = [](ProducerOptions& options) { options.work = mib(1); };
  const auto anew = [](ProducerOptions& options) {
    options.returns = false;
    options.hint = options.batch;
  };
  const auto wrong_hint = [](ProducerOptions& options) {
    options.hint = options.batch == mib(1) ? mib(10) : kib(1);
  };
  return {{small, large},
          {small, small, small, large},
          {with(small, triple), large},
          {with(small, triple), small},
          {with(small, wrong_hint), with(large, wrong_hint)},
          {small, with(large, little_work)},
          {small, with(small, anew), with(small, anew)},
          {small, with(large, anew), with(large, anew)},
          {large, with(small, anew), with(small, anew)}};
}

/// Two producers of 1:10 in the bytes of a batch need that much at least.
constexpr Bytes kLeast = mib(11);

void expect_shared(const std::vector<Served>& served) {
  EXPECT_GE(jain_index(served), 0.95) << served.front().share << " beside " << served.back().share;
}

TEST(Fairness, SharesFollowBytesAndWeightsWhereMemoryOrTheNumberOfBatchesIsTheLimit) {
  for (const int steps : {1, 3}) {
    for (const auto& producers : mixes(steps, 4 - steps)) {
      for (const std::uint64_t room : {1U, 16U}) {
        for (const auto& limit : {kBytesAlone, kTwoBatches}) {
          serve(kLeast * room, producers, limit, expect_shared);
        }
      }
      serve(kLeast, producers, kAdapts, expect_shared);
    }
  }
}

TEST(Fairness, WhereTimeIsTheLimitThoseThatAreSoonBackShareTheBytes) {
  auto producers = mixes(1, 3);
  producers.pop_back();  // of newcomers nobody knows that others like them come
  for (const auto& mix : producers) {
    for (const std::uint64_t room : {4U, 16U}) {
      for (const auto& limit : {kTwentySteps, kAdapts}) {
        serve(kLeast * room, mix, limit, expect_shared);
      }
    }
  }
}

TEST(Fairness, EachHasAtLeastTheTurnsOrTheBytesOfAnyOther) {
  for (const int steps : {1, 3}) {
    for (const auto& producers : mixes(steps, 4 - steps)) {
      for (const auto& limit : {kTwentySteps, kAdapts}) {
        serve(kLeast * 16, producers, limit, [](const std::vector<Served>& served) {
          for (const Served& one : served) {
            EXPECT_TRUE(std::ranges::all_of(served,
                                            [&one](const Served& other) {
                                              return one.batches >= 0.8 * other.batches ||
                                                     one.share >= 0.8 * other.share;
                                            }))
                << one.batches << " batches";
          }
        });
      }
    }
  }
}

TEST(Fairness, NewcomersOfUnknownSizeHaveAsManyTurns) {
  for (const auto& [own, others] : {std::pair{mib(1), mib(10)}, std::pair{mib(10), mib(1)}}) {
    const ProducerOptions newcomers{.batch = others, .returns = false};
    for (const auto& limit : {kBytesAlone, kTwoBatches, kTwentySteps, kAdapts}) {
      serve(kLeast * 4, {{.batch = own}, newcomers, newcomers}, limit,
            [](const std::vector<Served>& served) {
              EXPECT_NEAR(served[0].batches, served[1].batches, 2);
              EXPECT_NEAR(served[0].batches, served[2].batches, 2);
            });
    }
  }
}

TEST(Fairness, AProducerThatItsOwnHostHoldsBackHoldsNobodyElseBack) {
  // The first one's batch is open all the time. The others load for longer than they compute.
  for (const ProducerOptions& slow :
       {ProducerOptions{.batch = mib(1), .host_steps = kSteps * 3, .hint = mib(1)},
        ProducerOptions{.batch = mib(1), .away_steps = 8},
        ProducerOptions{.batch = mib(1), .away_steps = 30}}) {
    for (const auto& limit : {kBytesAlone, kTwentySteps, kAdapts}) {
      const ProducerOptions other{.batch = mib(10), .host_steps = 10, .hint = mib(10)};
      serve(kLeast * 4, {slow, other}, limit, [](const auto&) {});
    }
  }
}

TEST(Fairness, BatchesThatHoldNothingStarveNobody) {
  for (const std::uint64_t room : {1U, 4U, 16U}) {
    for (const auto& limit : {kBytesAlone, kTwoBatches, kTwentySteps, kAdapts}) {
      for (const Bytes& work : {kib(256), mib(1), mib(10)}) {
        SharedDevice device(
            kLeast * room,
            {{.host_steps = 3, .work = work}, {.batch = mib(10), .host_steps = 3, .work = mib(1)}},
            limit);
        const std::vector<Served> served = device.run(kSteps);
        EXPECT_GE(served[1].batches, served[0].batches / 3)
            << format_run_ahead(limit) << " in " << kLeast * room << ", " << work;
      }
    }
  }
}

TEST(Fairness, ANewcomerWhoseHintIsAboveTheBudgetWaitsForOneBudgetOfOthers) {
  constexpr Pressure kRoom{.level = {}, .held = {}, .budget = mib(4), .awaiting = {}};
  AdmissionRules rules(kBytesAlone);
  const auto ask = [&](Applicant& batch, std::uint64_t producer, Bytes hint) {
    batch.hint = hint;
    rules.apply(batch, std::to_string(producer), producer);
    rules.line_up(batch, kRoom);
  };
  Applicant huge;
  ask(huge, 2, Bytes{UINT64_MAX});
  int before = 0;
  Applicant own;
  for (ask(own, 1, mib(1)); rules.first() == &own && before < 100; ask(own, 1, mib(1))) {
    rules.close(rules.admit(own, mib(1), kRoom), false, {});
    ++before;
  }
  EXPECT_EQ(before, 3);
}

TEST(Fairness, AThreadThatDoesNotComeBackIsNotAwaitedTwice) {
  testing::Rig rig({.run_ahead = {.batches = 1, .time = std::chrono::hours(1)}});
  const auto submit = [&rig](const char* kind, Bytes bytes, int batches) {
    for (int i = 0; i < batches; ++i) {
      const Batch batch = rig->begin_batch(kind);
      (void)rig.filled(bytes, 1);
    }
  };
  submit("large", kib(256), 1);
  std::thread([&] {
    submit("small", kib(4), 1);
    rig->wait_all();  // now it is known how long both take
    rig.hold(StreamRole::kCompute);
    submit("small", kib(4), 4);
  }).join();
  submit("large", kib(256), 1);
  EXPECT_EQ(rig->admission().turn.count, 1U);
}

TEST(Fairness, AThreadThatWaitsIsOvertakenByNewThreadsForNoMoreThanItsOwnBytes) {
  constexpr Bytes kAll = kib(64);
  constexpr int kLoops = 4;
  constexpr int kMost = 100;
  for (const std::uint64_t part : {1U, 4U}) {
    testing::Rig rig({.budget = kAll, .run_ahead = kOneBatch, .grace = std::chrono::hours(1)});
    testing::Gate& gate = rig.hold(StreamRole::kCompute);
    const auto run = [&rig](Bytes bytes, const auto& inside) {
      const Batch batch = rig->begin_batch("of " + std::to_string(bytes.count), {.hint = bytes});
      inside();
      (void)rig.filled(bytes, 1);
    };
    std::atomic<int> admitted = 0;
    std::atomic<bool> stop = false;
    std::vector<std::thread> loops;
    const auto begin_on_new_threads = [&] {
      const auto begin = [&] { run(Bytes{kAll.count / part}, [&] { ++admitted; }); };
      while (!stop && admitted < kMost) std::thread(begin).join();
    };
    std::atomic_flag is_in_line;
    rig.backend.before_wait = [&](Point) {  // the second batch of this thread waits for the first
      if (is_in_line.test_and_set()) return;
      for (int i = 0; i < kLoops; ++i) loops.emplace_back(begin_on_new_threads);
      testing::give_others_a_chance();
      gate.open();
    };
    run(kAll, [] {});
    int before = kMost;
    run(kAll, [&] { before = admitted; });  // no other can be open beside it
    stop = true;
    for (std::thread& loop : loops) loop.join();
    rig.backend.before_wait = nullptr;
    EXPECT_LE(before, kLoops * static_cast<int>(part));
  }
}

TEST(Fairness, ANewKindCountsAsTheLastBatchAlsoIfThatNeverWaited) {
  constexpr Pressure kRoom{.level = {}, .held = {}, .budget = gib(1), .awaiting = {}};
  AdmissionRules rules(kBytesAlone);
  /// Returns the open batch; null if it has to wait.
  const auto begin = [&](Applicant& batch, std::string_view kind, std::uint64_t producer) {
    if (batch.kind == nullptr) rules.apply(batch, kind, producer);
    const auto [decision, state] = rules.ask(batch, false, kRoom);
    if (decision != Decision::kAdmit) return TicketRef{};
    Ticket& ticket = rules.admit(batch, state.estimate, kRoom);
    batch = {};
    return TicketRef{&ticket, ticket.serial};
  };
  const auto end = [&](TicketRef batch, Bytes took) {
    rules.ledger().note_allocated(batch, took);
    rules.ledger().note_freed(batch, took, false);
    rules.close(*batch.ticket, true, {});
    rules.settle({});
  };
  Applicant own;
  Applicant large;
  large.hint = mib(900);
  const TicketRef first = begin(own, "small", 1);
  ASSERT_EQ(begin(large, "large", 2).ticket, nullptr) << "it waits once";
  end(first, mib(1));
  end(begin(large, "large", 2), mib(900));
  end(begin(own, "small", 1), mib(1));
  TicketRef open = begin(own, "small", 1);

  Applicant newcomer;
  int passed_it = 0;
  while (begin(newcomer, "new", 3).ticket == nullptr) {
    end(open, mib(1));
    open = begin(own, "small", 1);
    if (open.ticket == nullptr) break;
    ++passed_it;
    ASSERT_LT(passed_it, 10);
  }
  EXPECT_LE(passed_it, 1);
}

}  // namespace
}  // namespace weir
