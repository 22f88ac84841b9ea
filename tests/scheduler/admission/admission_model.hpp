#pragma once

// A small model of producers, a device and one budget that runs the real rules of
// admission_decision.hpp in every possible order of steps.
//
// A producer runs the steps of its batch once or twice, and joins the line at any place. Memory
// that it frees awaits the device. The device passes that, or settles the oldest submitted batch,
// at any moment. A grace ends only where nothing else can happen. Letting others come back
// (kWaitShare) is a delay, as between any two steps. Memory is counted in a few units without
// sizes, so any free unit of the budget can be allocated.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "scheduler/admission/admission_decision.hpp"

namespace weir::testing {

struct ModelStep {
  enum Kind : std::uint8_t {
    kBegin,
    kTake,  ///< `amount` from the budget
    kGive,  ///< `amount` back, which awaits the device
    kPop,   ///< waits on the host until the next producer has closed more batches
    kClose,
  };
  Kind kind;
  std::uint8_t amount = 0;
};

/// The steps of each of a producer's batches.
struct ModelBatch {
  std::vector<ModelStep> steps;  ///< kBegin first, kClose last, all freed before
  unsigned estimate = 0;

  [[nodiscard]] unsigned peak() const {
    unsigned now = 0;
    unsigned most = 0;
    for (const ModelStep& step : steps) {
      if (step.kind == ModelStep::kTake) most = std::max(most, now += step.amount);
      if (step.kind == ModelStep::kGive) now -= step.amount;
    }
    return most;
  }
};

/// The rules under test; a test passes faulty ones to check that the search finds the fault.
struct ModelRules {
  Decision (*may_start)(const AdmissionState&, const RunAheadTarget&) =
      [](const AdmissionState& state, const RunAheadTarget& target) {
        return decide(state, target);
      };
  BlockedAllocation* (*fails)(std::uint64_t, std::span<BlockedAllocation* const>) =
      [](std::uint64_t open, std::span<BlockedAllocation* const> blocked) {
        return who_fails(open, blocked);
      };
};

/// The results over all orders of steps.
struct ModelFindings {
  std::uint64_t states = 0;
  std::uint64_t out_of_memory = 0;  ///< steps at which a batch ran out
  std::uint64_t oldest_failed = 0;  ///< of these, the oldest open batch, which fits in the budget
  std::uint64_t graces = 0;         ///< steps at which a grace ended, in an allocation
  std::uint64_t forced = 0;         ///< or before a forced admission
  std::uint64_t stuck = 0;          ///< states without a next step in which some are not done

  ModelFindings& operator+=(const ModelFindings& other) {
    states += other.states;
    out_of_memory += other.out_of_memory;
    oldest_failed += other.oldest_failed;
    graces += other.graces;
    forced += other.forced;
    stuck += other.stuck;
    return *this;
  }
};

class AdmissionModel {
 public:
  static constexpr unsigned kBudget = 4;
  static constexpr std::size_t kMostProducers = 3;
  static constexpr unsigned kMostRounds = 2;

  /// Each producer has as many batches as there are rounds.
  AdmissionModel(std::vector<ModelBatch> producers, unsigned rounds, const RunAheadTarget& target,
                 ModelRules rules = {})
      : batches_(std::move(producers)), rounds_(rounds), target_(target), rules_(rules) {}

  /// Follows every order of steps from the beginning.
  [[nodiscard]] ModelFindings search() {
    reach(State{});
    while (!open_.empty()) {
      const State state = open_.back();
      open_.pop_back();
      ++findings_.states;
      const std::size_t before = steps_;
      for (std::size_t p = 0; p < batches_.size(); ++p) step(state, p);
      device_steps(state);
      if (steps_ != before || done(state)) continue;
      for (std::size_t p = 0; p < batches_.size(); ++p) end_grace(state, p);
      if (steps_ == before) ++findings_.stuck;
    }
    return findings_;
  }

 private:
  struct Producer {
    std::uint8_t step = 0;
    std::uint8_t round = 0;
    std::uint8_t net = 0;     ///< allocated
    std::uint8_t awaits = 0;  ///< freed by the open batch and not passed
    std::uint8_t age = 0;     ///< of its open batch: the oldest has 1; 0: none is open
    std::uint8_t place = 0;   ///< in the line: the first has 1; 0: not in it
    bool blocked = false;
    bool has_news = false;
    bool fails = false;
    bool overdue =
        false;  ///< another batch was forced in beside its batch, which has no promise any more
  };
  struct State {
    std::array<Producer, kMostProducers> producers{};
    std::array<std::uint8_t, kMostProducers * kMostRounds>
        submitted{};          ///< what each left awaiting
    std::uint8_t queued = 0;  ///< how many are submitted
  };
  struct Key {
    std::uint64_t producers = 0;
    std::uint64_t device = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return (key.producers ^ (key.device * 0x9E3779B97F4A7C15U)) * 0xD6E8FEB86659FD93U >> 7U;
    }
  };

  static Key key_of(const State& s) {
    Key key;
    for (const Producer& p : s.producers) {
      const unsigned flags = (p.overdue ? 8U : 0U) | (p.blocked ? 4U : 0U) |
                             (p.has_news ? 2U : 0U) | (p.fails ? 1U : 0U);
      for (const auto& [value, bits] :
           {std::pair{unsigned{p.step}, 4U}, std::pair{unsigned{p.round}, 2U},
            std::pair{unsigned{p.net}, 3U}, std::pair{unsigned{p.awaits}, 3U},
            std::pair{unsigned{p.age}, 2U}, std::pair{unsigned{p.place}, 2U},
            std::pair{flags, 4U}}) {
        key.producers = key.producers << bits | value;
      }
    }
    for (const std::uint8_t awaits : s.submitted) key.device = key.device << 3U | awaits;
    key.device = key.device << 3U | s.queued;
    return key;
  }

  void reach(const State& state) {
    ++steps_;
    if (seen_.insert(key_of(state)).second) open_.push_back(state);
  }

  [[nodiscard]] bool done(const State& s) const {
    for (std::size_t p = 0; p < batches_.size(); ++p) {
      if (s.producers[p].round < rounds_) return false;
    }
    return s.queued == 0;
  }
  static unsigned allocated(const State& s) {
    unsigned sum = 0;
    for (const Producer& p : s.producers) sum += p.net;
    return sum;
  }
  static unsigned awaiting(const State& s) {
    unsigned sum = 0;
    for (const Producer& p : s.producers) sum += p.awaits;
    for (const std::uint8_t awaits : s.submitted) sum += awaits;
    return sum;
  }
  static unsigned open_count(const State& s) {
    unsigned count = 0;
    for (const Producer& p : s.producers) count += p.age != 0 ? 1 : 0;
    return count;
  }

  [[nodiscard]] Decision decision(const State& s, std::size_t own, bool grace_over) const {
    unsigned unspent = 0;
    for (std::size_t p = 0; p < batches_.size(); ++p) {
      const Producer& other = s.producers[p];
      const unsigned spent = other.net + other.awaits;
      if (other.age == 0 || other.overdue) continue;
      if (batches_[p].estimate > spent) unspent += batches_[p].estimate - spent;
    }
    return rules_.may_start(
        {.first_in_line = s.producers[own].place == 1,
         .grace_over = grace_over,
         .pressure = {.held = {allocated(s) + awaiting(s)}, .budget = {kBudget}},
         .unspent = {unspent},
         .estimate = {batches_[own].estimate},
         .open = open_count(s),
         .submitted = s.queued,
         .queued = std::chrono::hours(s.queued)},
        target_);
  }

  void step(const State& state, std::size_t p) {
    const Producer& own = state.producers[p];
    if (own.round == rounds_) return;
    const ModelStep& now = batches_[p].steps[own.step];
    State next = state;
    Producer& self = next.producers[p];
    switch (now.kind) {
      case ModelStep::kBegin:
        begin(state, p);
        return;
      case ModelStep::kTake:
        take(state, p, now.amount);
        return;
      case ModelStep::kGive:
        give(next, self, now.amount);
        ++self.step;
        break;
      case ModelStep::kPop:
        if (state.producers[(p + 1) % batches_.size()].round <= own.round) return;
        ++self.step;
        break;
      case ModelStep::kClose:
        close(next, p);
    }
    reach(next);
  }

  void begin(const State& state, std::size_t p) {
    if (state.producers[p].place != 0) {
      if (decision(state, p, false) != Decision::kAdmit) return;
      State next = state;
      admit(next, p);
      reach(next);
      return;
    }
    std::uint8_t last = 0;
    for (const Producer& other : state.producers) last = std::max(last, other.place);
    for (std::uint8_t place = 1; place <= last + 1; ++place) {
      State next = state;
      for (Producer& other : next.producers) {
        if (other.place >= place) ++other.place;
      }
      next.producers[p].place = place;
      reach(next);
    }
  }

  static void admit(State& next, std::size_t p) {
    for (Producer& other : next.producers) {
      if (other.place != 0) --other.place;
    }
    next.producers[p].age = static_cast<std::uint8_t>(open_count(next) + 1);
    ++next.producers[p].step;
  }

  void take(const State& state, std::size_t p, unsigned amount) {
    State next = state;
    Producer& self = next.producers[p];
    if (self.blocked && !self.has_news) return;
    const bool fails = self.fails;
    self.blocked = self.has_news = self.fails = false;
    if (allocated(state) + awaiting(state) + amount <= kBudget) {
      self.net = static_cast<std::uint8_t>(self.net + amount);
      ++self.step;
    } else if (awaiting(state) != 0 && amount <= kBudget) {
      return;  // the pool waits for the device
    } else if (fails || amount > kBudget) {
      fail(next, p);
    } else {
      self.blocked = true;
      fail_one(next);
    }
    reach(next);
  }

  void fail_one(State& next) const {
    std::array<BlockedAllocation, kMostProducers> list{};
    std::vector<BlockedAllocation*> blocked;
    for (std::size_t p = 0; p < batches_.size(); ++p) {
      if (!next.producers[p].blocked) continue;
      list[p] = {.batch = next.producers[p].age, .has_news = next.producers[p].has_news};
      blocked.push_back(&list[p]);
    }
    const BlockedAllocation* chosen = rules_.fails(open_count(next), blocked);
    if (chosen == nullptr) return;
    Producer& fails = next.producers[static_cast<std::size_t>(chosen - list.data())];
    fails.has_news = fails.fails = true;
  }

  /// The batch runs out of memory: it frees everything and ends.
  void fail(State& next, std::size_t p) {
    Producer& self = next.producers[p];
    ++findings_.out_of_memory;
    if (self.age == 1 && batches_[p].peak() <= kBudget) ++findings_.oldest_failed;
    give(next, self, self.net);
    close(next, p);
  }

  void give(State& next, Producer& self, unsigned amount) const {
    self.net = static_cast<std::uint8_t>(self.net - amount);
    self.awaits = static_cast<std::uint8_t>(self.awaits + amount);
    for (std::size_t p = 0; p < batches_.size(); ++p) {
      Producer& other = next.producers[p];
      if (!other.blocked) continue;
      if (allocated(next) + batches_[p].steps[other.step].amount <= kBudget) other.has_news = true;
    }
  }

  void close(State& next, std::size_t p) const {
    Producer& self = next.producers[p];
    for (Producer& other : next.producers) {
      if (other.age > self.age) --other.age;
    }
    next.submitted.at(next.queued++) = self.awaits;
    self = {.round = static_cast<std::uint8_t>(self.round + 1)};
    fail_one(next);
  }

  void device_steps(const State& state) {
    for (std::size_t p = 0; p < batches_.size(); ++p) {
      if (state.producers[p].awaits == 0) continue;
      State next = state;
      next.producers[p].awaits = 0;
      reach(next);
    }
    if (state.queued == 0) return;
    State next = state;
    std::shift_left(next.submitted.begin(), next.submitted.end(), 1);
    next.submitted.back() = 0;
    --next.queued;
    reach(next);
  }

  void end_grace(const State& state, std::size_t p) {
    State next = state;
    if (state.producers[p].blocked) {
      ++findings_.graces;
      fail(next, p);
      reach(next);
    } else if (state.producers[p].place == 1 && decision(state, p, true) == Decision::kForce) {
      ++findings_.forced;
      for (Producer& other : next.producers) other.overdue = other.age != 0;
      admit(next, p);
      reach(next);
    }
  }

  const std::vector<ModelBatch> batches_;
  const unsigned rounds_;
  const RunAheadTarget target_;
  const ModelRules rules_;
  std::vector<State> open_;
  std::unordered_set<Key, KeyHash> seen_;
  std::size_t steps_ = 0;
  ModelFindings findings_;
};

}  // namespace weir::testing
