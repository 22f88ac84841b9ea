// Simulated time. A stream runs its tasks in order, so the end of each is known when it is
// enqueued; the producer with the earliest next step goes on.

#include <algorithm>
#include <array>
#include <optional>

#include "bench/run_ahead/run.hpp"
#include "scheduler/admission/admission_rules.hpp"

namespace weir::run_ahead {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Time kNever = Time::max();
constexpr Bytes kBudget{UINT64_C(1) << 50U};  // to spare
constexpr Time kLaunch = std::chrono::microseconds(3);

class SimulatedStreams {
 public:
  /// Runs a task of the batch; returns its end.
  Time enqueue(Ticket& ticket, StreamRole role, Time now, Time after, Time takes) {
    std::vector<Time>& ends = ends_.at(index_of(role));
    const std::optional<Time> last = ends.empty() ? std::nullopt : std::optional(ends.back());
    const Time begin = std::max({now, after, last.value_or(now)}) + kLaunch;
    const Time idle = last ? begin - *last : Time{};
    const Time starved = last ? std::max(Time{}, now - *last) : Time{};
    const Time end = begin + takes;
    ticket.note_ran(
        role,
        {.device_time = takes, .gap = idle, .starved = starved, .end = Clock::time_point(end)});
    ticket.touched.insert(role);
    ends.push_back(end);
    return end;
  }
  [[nodiscard]] Point point(StreamRole role) const {
    return {.stream = {index_of(role) + 1}, .sequence = ends_.at(index_of(role)).size()};
  }
  [[nodiscard]] Time end_of(Point point) const {
    return ends_.at(point.stream.value - 1).at(point.sequence - 1);
  }
  [[nodiscard]] AdmissionRules::Passed passed(Time now) {
    for (std::size_t role = 0; role < kStreamRoles; ++role) {
      const std::vector<Time>& ends = ends_.at(role);
      while (passed_.at(role) < ends.size() && ends[passed_.at(role)] <= now) ++passed_.at(role);
    }
    return passed_;
  }

 private:
  std::array<std::vector<Time>, kStreamRoles> ends_;
  AdmissionRules::Passed passed_{};
};

class SimulatedCase {
 public:
  SimulatedCase(const std::vector<std::vector<CaseBatch>>& producers, const RunAhead& run_ahead,
                std::uint64_t seed, std::uint64_t first)
      : rules_(run_ahead, first), random_(seed) {
    for (const auto& batches : producers) {
      producers_.push_back({.batches = batches, .number = ++threads_});
      all_ = batches.size();
    }
    for (Producer& producer : producers_) load(producer);
  }

  CaseRun run() {
    for (;;) {
      Producer& next = *std::ranges::min_element(producers_, {}, &Producer::next);
      if (next.next == kNever) break;
      now_ = next.next;
      settle();
      if (next.is_submitting) {
        submit(next);
      } else {
        begin(next);
      }
    }
    rules_.settle(streams_.passed(kNever));
    run_.duration = last_end_;
    run_.lost = rules_.run_ahead().caused_idle;
    return run_;
  }

 private:
  struct Producer {
    const std::vector<CaseBatch>& batches;
    std::uint64_t number;
    std::size_t at = 0;
    Time next{};
    Applicant place{};
    Ticket* ticket = nullptr;
    bool is_in_line = false;
    bool is_submitting = false;  ///< its batch is open
    std::optional<Decision> waits{};
    Time since{};

    [[nodiscard]] const CaseBatch& batch() const { return batches[at]; }
  };
  struct Live {
    Time end;
    Bytes memory;
  };

  void load(Producer& producer) {
    const bool is_over = loaded_ == all_;
    producer.next = is_over ? kNever : now_ + producer.batch().load;
    if (!is_over) ++loaded_;
  }
  void settle() {
    std::erase_if(live_, [this](const Live& live) {
      if (live.end > now_) return false;
      held_ -= live.memory;
      return true;
    });
    rules_.settle(streams_.passed(now_));
  }
  [[nodiscard]] Time wake_up() {
    return std::chrono::microseconds(10 + static_cast<int>(random_.uniform() * 20));
  }

  void begin(Producer& producer) {
    const Pressure pressure{.held = held_, .budget = kBudget, .awaiting = held_ - allocated_};
    if (!producer.is_in_line) {
      producer.place = {};
      const std::uint64_t number = producer.batch().new_thread ? ++threads_ : producer.number;
      rules_.apply(producer.place, producer.batch().kind, number);
      producer.is_in_line = true;
    }
    if (producer.waits) producer.place.note_waited(*producer.waits, now_ - producer.since);
    const auto [decision, state] = rules_.ask(producer.place, false, pressure);
    producer.waits = decision;
    producer.since = now_;
    if (decision == Decision::kAdmit) return admit(producer, state, pressure);
    if (decision == Decision::kWaitTurn || decision == Decision::kWaitOpen) {
      // Until another one goes on.
      producer.next = kNever;
      for (const Producer& other : producers_) producer.next = std::min(producer.next, other.next);
      producer.next += Time(1000);
      return;
    }
    if (decision == Decision::kWaitShare) {
      rules_.give_way(producer.place);
      producer.next = now_ + rules_.patience(state);
      return;
    }
    const auto point = rules_.point_to_await(producer.place, decision);
    producer.next = std::max(now_, streams_.end_of(*point)) + wake_up();
  }

  void admit(Producer& producer, const AdmissionState& state, const Pressure& pressure) {
    const Bytes memory = producer.batch().memory;
    producer.ticket = &rules_.admit(producer.place, state.estimate, pressure);
    producer.is_in_line = false;
    producer.waits.reset();
    rules_.ledger().note_allocated({producer.ticket, producer.ticket->serial}, memory);
    held_ += memory;
    allocated_ += memory;
    run_.peak = std::max(run_.peak, held_);
    if (3 * begun_++ >= 2 * all_) run_.held = std::max(run_.held, held_);
    producer.is_submitting = true;
    producer.next = now_ + producer.batch().before + producer.batch().between;
  }

  void submit(Producer& producer) {
    const CaseBatch& batch = producer.batch();
    Ticket& ticket = *producer.ticket;
    Time end = streams_.enqueue(ticket, StreamRole::kCopyIn, now_ - batch.between, {}, batch.copy);
    if (batch.first != Time{}) {
      end = streams_.enqueue(ticket, StreamRole::kCompute, now_, end, batch.first);
    }
    if (batch.second != Time{}) {
      end = streams_.enqueue(ticket, StreamRole::kCompute2, now_, end, batch.second);
    }
    std::array<Point, kStreamRoles> points{};
    for (const StreamRole role : kAllRoles) points.at(index_of(role)) = streams_.point(role);
    rules_.ledger().note_freed({&ticket, ticket.serial}, batch.memory, true);
    allocated_ -= batch.memory;
    ticket.points = points;
    rules_.close(ticket, true, streams_.passed(now_));
    live_.push_back({end, batch.memory});
    last_end_ = std::max(last_end_, end);
    run_.work += work_of(batch);
    producer.is_submitting = false;
    ++producer.at;
    if (batch.read) {
      now_ = std::max(now_, last_end_) + wake_up();
      settle();
      rules_.note_synchronized();
    }
    load(producer);
  }

  AdmissionRules rules_;
  Random random_;
  SimulatedStreams streams_;
  std::vector<Producer> producers_;
  std::vector<Live> live_;
  Time now_{};
  Time last_end_{};
  Bytes held_{};
  Bytes allocated_{};
  std::uint64_t all_ = 0;
  std::uint64_t loaded_ = 0;
  std::uint64_t threads_ = 0;
  std::uint64_t begun_ = 0;
  CaseRun run_{};
};

}  // namespace

CaseRun simulate_case(const std::vector<std::vector<CaseBatch>>& producers,
                      const RunAhead& run_ahead, std::uint64_t seed, std::uint64_t first) {
  return SimulatedCase(producers, run_ahead, seed, first).run();
}

}  // namespace weir::run_ahead
