// Weir's own rules, called as Admission calls them.

#include <optional>
#include <utility>
#include <vector>

#include "bench/simulate/gate.hpp"
#include "scheduler/admission/admission_rules.hpp"

namespace weir::simulate {
namespace {

using Clock = std::chrono::steady_clock;

class WeirGate final : public Gate {
 public:
  WeirGate(const RunAhead& run_ahead, Memory& memory, std::size_t producers, bool beside_open)
      : memory_(memory), rules_(run_ahead), places_(producers), beside_open_(beside_open) {}

  [[nodiscard]] Verdict ask(std::size_t producer, const BatchShape& shape, Time now) override {
    rules_.settle(passed_);
    Place& place = places_[producer];
    const Pressure pressure = memory_.pressure();
    if (!place.joined) {
      place.hint = shape.hint;
      rules_.apply(place, "kind " + std::to_string(shape.kind), producer + 1);
      place.joined = true;
    }
    place.grace_over = place.deadline && now >= *place.deadline;
    auto [decision, state] = rules_.ask(place, false, pressure);
    if (beside_open_) {
      state = state_of(place, pressure);
      decision = rules_.decide(state);
    }
    place.decision = decision;
    place.patience = rules_.patience(state);
    if (place.decision == Decision::kAdmit || place.decision == Decision::kForce) {
      Ticket& ticket = rules_.admit(place, state.estimate, pressure);
      if (place.waited_for_room) rules_.note_waited_for_memory();
      place = {};
      place.ticket = {&ticket, ticket.serial};
      wake_first();
      return {};
    }
    if (place.decision != Decision::kWaitOpen) place.deadline.reset();
    return wait_of(place, now);
  }

  void woken(std::size_t producer, Time since, Time now) override {
    Place& place = places_[producer];
    if (!place.joined) return;
    place.note_waited(place.decision, now - since);
    place.asleep = false;
  }

  void allocated(std::size_t producer, Bytes bytes, bool waited) override {
    rules_.ledger().note_allocated(places_[producer].ticket, bytes);
    if (waited) rules_.note_waited_for_memory(places_[producer].ticket);
  }
  void freed(std::size_t producer, Bytes bytes, bool awaiting) override {
    rules_.ledger().note_freed(places_[producer].ticket, bytes, awaiting);
    news_ = true;
  }
  void freed_kept(void* ticket, std::uint64_t serial, Bytes bytes) override {
    rules_.ledger().note_freed({static_cast<Ticket*>(ticket), serial}, bytes, false);
    news_ = true;
  }

  void closed(std::size_t producer, Flight* flight, Time /*now*/) override {
    Place& place = places_[producer];
    Ticket& ticket = *place.ticket.ticket;
    std::array<Point, kStreamRoles> points{};
    if (flight != nullptr) {
      for (const StreamRole role : {StreamRole::kCompute, StreamRole::kCopyIn}) {
        ticket.touched.insert(role);
        points.at(index_of(role)) = {.stream = stream_of(role), .sequence = flight->sequence};
      }
      if (flight->shape.collective > Time{}) {
        ticket.touched.insert(StreamRole::kCompute2);
        points.at(index_of(StreamRole::kCompute2)) = {.stream = stream_of(StreamRole::kCompute2),
                                                      .sequence = flight->sequence};
      }
      flight->ticket = &ticket;
    }
    ticket.points = points;
    rules_.close(ticket, flight != nullptr, passed_);
    place.ticket = {};
    news_ = true;
  }

  void passed(const Flight& flight) override {
    Ticket& ticket = *static_cast<Ticket*>(flight.ticket);
    const BatchRun run = flight.run();
    for (const StreamRole role : kAllRoles) {
      const StreamRun& on = run.at(index_of(role));
      if (on.device_time == Time{}) continue;
      ticket.note_ran(role, {.device_time = on.device_time,
                             .gap = on.gap,
                             .starved = on.starved,
                             .end = Clock::time_point(on.ended)});
    }
    passed_.fill(flight.sequence);
  }

  [[nodiscard]] std::vector<std::size_t> wakes() override {
    std::vector<std::size_t> woken;
    if (!news_) return woken;
    news_ = false;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      if (!place.joined || !place.asleep) continue;
      const bool is_first = rules_.first() == &place;
      if (place.decision == Decision::kWaitTurn ? is_first : may_go_on(place)) {
        place.asleep = false;
        woken.push_back(i);
      }
    }
    return woken;
  }

  [[nodiscard]] std::uint64_t serial(std::size_t producer) const override {
    return places_[producer].ticket.serial;
  }
  [[nodiscard]] std::optional<RunAheadStatistics> control() override {
    rules_.settle(passed_);  // those after the last question too
    return rules_.run_ahead();
  }
  [[nodiscard]] Time target_so_far() const override { return rules_.run_ahead().target; }

 private:
  struct Place : Applicant {
    bool joined = false;
    bool asleep = false;  ///< until its turn, or for an open batch
    Decision decision{};
    Time patience{};
    std::optional<Time> deadline{};
    TicketRef ticket{};
  };

  static StreamId stream_of(StreamRole role) { return {index_of(role) + 1}; }
  [[nodiscard]] bool may_go_on(const Place& place) const {
    return rules_.decide(state_of(place, memory_.pressure())) != Decision::kWaitOpen;
  }
  [[nodiscard]] AdmissionState state_of(const Place& place, const Pressure& pressure) const {
    AdmissionState state = rules_.state_of(place, false, pressure);
    if (beside_open_) {
      state.pressure.held = state.live;
      state.unspent = {};
    }
    return state;
  }
  void wake_first() { news_ = true; }

  [[nodiscard]] Verdict wait_of(Place& place, Time now) {
    if (place.decision == Decision::kWaitTurn) {
      place.asleep = true;
      wake_first();  // settling may have made it the first
      return {.wait = Verdict::Wait::kTurn};
    }
    if (place.decision == Decision::kWaitOpen) {
      place.asleep = true;
      if (!place.deadline) place.deadline = now + std::chrono::seconds(10);
      return {.wait = Verdict::Wait::kOpen, .memory = true};
    }
    if (place.decision == Decision::kWaitShare) {
      rules_.give_way(place);
      return {.wait = Verdict::Wait::kTask, .task_end = now + place.patience, .soft = true};
    }
    const auto awaited = rules_.point_to_await(place, place.decision);
    return {.wait = Verdict::Wait::kDevice,
            .sequence = awaited->sequence,
            .soft = place.decision == Decision::kWaitSoft,
            .memory = place.decision == Decision::kWaitHard};
  }

  Memory& memory_;
  AdmissionRules rules_;
  std::vector<Place> places_;
  const bool beside_open_;
  std::array<std::uint64_t, kStreamRoles> passed_{};
  bool news_ = false;
};

}  // namespace

std::unique_ptr<Gate> make_weir_gate(const RunAhead& run_ahead, Memory& memory,
                                     std::size_t producers, bool beside_open) {
  return std::make_unique<WeirGate>(run_ahead, memory, producers, beside_open);
}

}  // namespace weir::simulate
