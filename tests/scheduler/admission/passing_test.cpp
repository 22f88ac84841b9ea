// A batch that is admitted at once never stands in the line. That changes nothing for others: two
// worlds take the same random steps, and in one of them every batch lines up before it is decided
// on.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/admission/admission_rules.hpp"
#include "support/print.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using std::chrono::microseconds;
using testing::random_seed;
using testing::seed_message;

struct Producer {
  std::string kind;
  std::uint64_t thread = 0;
  Bytes takes;
  std::uint32_t weight = 1;
  bool tells = false;   ///< what its batches take
  bool is_new = false;  ///< each batch has a thread and a kind of its own
  Applicant place{};    ///< without a kind: it does not ask
  Ticket* open = nullptr;
};

class World {
 public:
  World(bool lines_up, const RunAhead& run_ahead, std::vector<Producer> producers)
      : lines_up_(lines_up), rules_(run_ahead), producers_(std::move(producers)) {}

  /// Begins a batch, or looks again.
  AdmissionRules::Answer ask(std::size_t number, bool cancelled, bool grace_over) {
    rules_.settle({passed_});
    Producer& own = producers_.at(number);
    if (own.place.kind == nullptr) apply(own);
    own.place.grace_over = grace_over;
    AdmissionRules::Answer answer = rules_.ask(own.place, cancelled, pressure());
    switch (answer.decision) {
      case Decision::kRefuse:
        rules_.leave(own.place);
        own.place.kind = nullptr;
        break;
      case Decision::kForce:
        rules_.lapse_promises();
        [[fallthrough]];
      case Decision::kAdmit:
        own.open = &rules_.admit(own.place, answer.state.estimate, pressure());
        own.open->thread = own.thread;
        own.place.kind = nullptr;
        break;
      case Decision::kWaitShare:
        rules_.give_way(own.place);
        [[fallthrough]];
      default:
        own.place.note_waited(answer.decision, microseconds(50));
    }
    return answer;
  }
  /// Submits the open batch if its memory is there.
  void close(std::size_t number, microseconds takes) {
    Producer& own = producers_.at(number);
    if (own.open == nullptr || held_ + own.takes > kBudget) return;
    const TicketRef ref{own.open, own.open->serial};
    rules_.ledger().note_allocated(ref, own.takes);
    rules_.ledger().note_freed(ref, own.takes, true);
    held_ += own.takes;
    own.open->touched = {StreamRole::kCompute};
    own.open->points.front() = {.stream = StreamId{1}, .sequence = ++closed_};
    rules_.close(*own.open, true, {passed_});
    queue_.push_back({own.open, own.takes, takes});
    own.open = nullptr;
  }
  /// The device runs the oldest batch.
  void run() {
    if (queue_.empty()) return;
    const Queued first = queue_.front();
    queue_.pop_front();
    now_ += first.takes;
    first.ticket->note_ran(StreamRole::kCompute, {.device_time = first.takes, .end = now_});
    held_ -= first.bytes;
    rules_.settle({++passed_});
  }
  [[nodiscard]] bool is_open(std::size_t number) const {
    return producers_.at(number).open != nullptr;
  }
  /// Returns which producer is first in the line; their number if nobody waits.
  [[nodiscard]] std::size_t first() const {
    const auto found = std::ranges::find_if(
        producers_, [this](const Producer& one) { return &one.place == rules_.first(); });
    return static_cast<std::size_t>(found - producers_.begin());
  }

 private:
  struct Queued {
    Ticket* ticket;
    Bytes bytes;
    microseconds takes;
  };
  static constexpr Bytes kBudget = mib(64);

  [[nodiscard]] Pressure pressure() const {
    return {.held = held_, .budget = kBudget, .awaiting = held_};
  }
  void apply(Producer& own) {
    if (own.is_new) own.kind = std::to_string(own.thread += 100);
    own.place = {};
    own.place.weight = own.weight;
    if (own.tells) own.place.hint = own.takes;
    rules_.apply(own.place, own.kind, own.thread);
    if (lines_up_) rules_.line_up(own.place, pressure());
  }

  const bool lines_up_;
  AdmissionRules rules_;
  std::vector<Producer> producers_;
  std::deque<Queued> queue_;
  Bytes held_;
  std::uint64_t closed_ = 0;
  std::uint64_t passed_ = 0;
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
};

TEST(Passing, WhoNeedNotWaitIsDecidedOnAsIfItStoodInTheLine) {
  const std::uint64_t seed = random_seed();
  std::mt19937_64 random(seed);
  const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(seed_message(seed) + ", run " + std::to_string(run));
    RunAhead run_ahead;
    if (below(3) == 0) run_ahead = {.batches = 1, .time = std::chrono::milliseconds(1 + below(20))};
    if (below(3) == 0) run_ahead = {.batches = 1 + below(3), .time = std::chrono::nanoseconds(0)};
    std::vector<Producer> producers(2 + below(3));
    for (std::size_t i = 0; i < producers.size(); ++i) {
      producers[i] = {.kind = std::to_string(i),
                      .thread = 1 + i,
                      .takes = mib(1 + below(below(2) == 0 ? 24 : 4)),
                      .weight = 1 + below(3),
                      .tells = below(2) == 0,
                      .is_new = below(4) == 0};
    }
    World passes(false, run_ahead, producers);
    World lines_up(true, run_ahead, producers);
    for (int step = 0; step < 1000; ++step) {
      const std::size_t who = below(static_cast<unsigned>(producers.size()));
      const unsigned what = below(5);
      if (what == 0) {
        passes.run();
        lines_up.run();
      } else if (passes.is_open(who)) {
        const microseconds takes(100 + below(4000));
        passes.close(who, takes);
        lines_up.close(who, takes);
      } else if (what >= 3) {
        const bool cancelled = below(40) == 0;
        const bool grace_over = below(10) == 0;
        const auto answer = passes.ask(who, cancelled, grace_over);
        ASSERT_EQ(answer.decision, lines_up.ask(who, cancelled, grace_over).decision);
      }
      ASSERT_EQ(passes.first(), lines_up.first());
    }
  }
}

}  // namespace
}  // namespace weir
