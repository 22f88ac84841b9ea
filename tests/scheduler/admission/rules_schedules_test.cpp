// Random schedules of AdmissionRules, without a lock, a thread or a clock: producers ask, open,
// allocate, free, close and cancel in any order, and a device passes what was submitted at any
// moment. After each step the rules are compared with sums that are kept apart from them. One long
// file, because every step changes the whole model.
//
// WEIR_TEST_SCHEDULES sets how many (a million takes some minutes), WEIR_TEST_SEED the first one.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "scheduler/admission/admission_rules.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using Duration = std::chrono::nanoseconds;

/// What schedules have gone through, so that a test can check that they were not idle.
struct Counts {
  std::uint64_t steps = 0;
  std::uint64_t admitted = 0;
  std::uint64_t alone = 0;  ///< of these, with nothing in flight
  std::uint64_t forced = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t held_back = 0;  ///< looks that waited for the run-ahead target
  std::uint64_t caused = 0;     ///< schedules in which holding back caused idle time
  std::uint64_t ran_out = 0;    ///< allocations without room
  std::uint64_t overtaken = 0;  ///< batches of others that began and ended while one waited
  std::uint64_t overdue = 0;    ///< admitted beside a waiter that was passed over for long enough
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, Counts& counts)
      : random_(seed), chosen_(any_target()), rules_(chosen_), counts_(counts) {
    budget_ = 4 + below(29);
    producers_.resize(1 + below(4));
    for (std::size_t p = 0; p < producers_.size(); ++p) {
      producers_[p].number = p + 1;
      producers_[p].weight = static_cast<std::uint32_t>(below(4) == 0 ? 1 + below(4) : 1);
      producers_[p].largest = 1 + below(budget_ + budget_ / 4);
      producers_[p].others.resize(producers_.size());
    }
  }

  /// Runs `steps` random steps, then everything to its end. Returns what was wrong first.
  std::optional<std::string> run(unsigned steps) {
    for (unsigned i = 0; i < steps && !wrong_; ++i) {
      step(below(16));
      check();
    }
    finish();
    return wrong_;
  }

 private:
  /// Parts of a byte that each weight divides.
  static constexpr std::uint64_t kUnits = 12;

  /// What another producer has been charged for batches that began and ended during a wait.
  struct Other {
    bool counts = false;      ///< its open batch began during the wait
    std::uint64_t bytes = 0;  ///< in units
  };
  struct Producer {
    std::uint64_t number = 0;
    std::uint32_t weight = 1;
    std::uint64_t largest = 0;  ///< of its batches
    std::uint64_t charge = 0;   ///< the most that a batch of it was charged in the line, in units
    std::uint64_t asked = 0;    ///< what its place counts, in units
    std::uint64_t ahead = 0;    ///< what it waits for as a newcomer, in units
    std::optional<Applicant> place;
    Duration joined_at{};       ///< device time of all that was settled by then
    std::vector<Other> others;  ///< while it waits

    Ticket* open = nullptr;
    std::uint64_t estimate = 0;
    std::uint64_t net = 0;
    std::uint64_t peak = 0;
    std::uint64_t freed = 0;    ///< what it is charged for after it has closed
    std::uint64_t pending = 0;  ///< of that, not passed by the device
    bool lapsed = false;
  };
  struct Submitted {
    Duration device_time{};
    std::uint64_t freed = 0;
    std::uint64_t pending = 0;
  };
  /// Memory that a batch has not freed when it closed.
  struct Kept {
    TicketRef batch;
    std::uint64_t bytes = 0;
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  RunAhead any_target() {
    const std::uint64_t choice = below(4);
    if (choice == 0) return {.batches = std::nullopt};
    time_counts_ = choice != 1 || below(2) == 0;
    if (choice == 1) return {.batches = 1 + below(3), .time = Duration(time_counts_ ? 50 : 0)};
    return {};
  }
  void expect(bool holds, const char* what) {
    if (!holds && !wrong_) wrong_ = what;
  }

  // The sums that are kept apart.

  template <typename Value>
  [[nodiscard]] std::uint64_t sum_open(Value value) const {
    std::uint64_t sum = 0;
    for (const Producer& p : producers_) sum += p.open != nullptr ? value(p) : 0;
    return sum;
  }
  [[nodiscard]] std::uint64_t open_count() const {
    return sum_open([](const Producer&) { return 1U; });
  }
  [[nodiscard]] std::uint64_t allocated() const {
    return sum_open([](const Producer& p) { return p.net; });
  }
  [[nodiscard]] std::uint64_t promised() const {
    return sum_open(
        [](const Producer& p) { return p.lapsed || p.net > p.estimate ? 0 : p.estimate - p.net; });
  }
  [[nodiscard]] std::uint64_t awaiting() const {
    std::uint64_t sum = sum_open([](const Producer& p) { return p.pending; });
    for (const Submitted& batch : submitted_) sum += batch.pending;
    return sum;
  }
  [[nodiscard]] std::uint64_t owed() const {
    std::uint64_t sum = 0;
    for (const Submitted& batch : submitted_) sum += batch.freed;
    return sum;
  }
  [[nodiscard]] std::uint64_t live() const {
    std::uint64_t sum = 0;
    for (const Kept& kept : kept_) sum += kept.bytes;
    return sum;
  }
  [[nodiscard]] std::uint64_t held() const { return live() + allocated() + awaiting(); }
  [[nodiscard]] Pressure pressure() const {
    return {.held = {held()}, .budget = {budget_}, .awaiting = {awaiting()}};
  }
  /// Whether `estimate` fits beside all that is held and promised, or with no batch open beside
  /// live memory.
  [[nodiscard]] bool fits(std::uint64_t estimate) const {
    return held() + promised() + estimate <= budget_ ||
           (open_count() == 0 && live() + estimate <= budget_);
  }

  void check() {
    const Ledger& ledger = rules_.ledger();
    expect(ledger.open_count() == open_count(), "the number of open batches");
    expect(ledger.submitted() == submitted_.size(), "the number of submitted batches");
    expect(ledger.allocated().count == allocated(), "what open batches hold");
    expect(ledger.unspent().count == promised(), "what open batches are promised");
    expect(ledger.charged().count == allocated() + promised() + owed(), "the sum of charges");
    expect(ledger.charged(Bytes{awaiting()}).count ==
               allocated() + promised() + std::min(owed(), awaiting()),
           "the sum of charges, of what still awaits the device");
    expect(held() <= budget_, "the schedule itself exceeds the budget");
    check_target();
  }

  void check_target() {
    const RunAhead target = rules_.control().target(rules_.control().statistics().copy);
    if (!adapts(chosen_)) {
      expect(target == chosen_, "a chosen target moved");
      return;
    }
    const RunAheadStatistics now = rules_.control().statistics();
    expect(target.batches == chosen_.batches && target.time == now.target, "the target");
    expect(now.target == now.lead + now.copy + now.margin && now.target <= now.most,
           "parts of the target");
    expect(now.lead >= Duration{} && now.lead <= most_lead_, "the lead is none that was seen");
    expect(now.margin >= Duration{} && now.margin <= now.caused_idle, "the margin");
    expect(now.caused_idle <= std::min(held_back_, gaps_), "idle that nobody caused");
  }

  void step(std::uint64_t choice) {
    ++counts_.steps;
    now_ += Duration(1 + below(40));
    Producer& p = producers_[below(producers_.size())];
    if (choice < 3) {
      ask(p);
    } else if (choice < 7) {
      look(below(6) == 0);
    } else if (choice < 9) {
      allocate(p, 1 + below(p.largest));
    } else if (choice < 10) {
      free_some(p);
    } else if (choice < 11) {
      close(p);
    } else if (choice < 13) {
      pass();
    } else if (choice < 15) {
      settle();
    } else if (below(3) == 0) {
      cancel(p);
    } else if (!kept_.empty()) {
      free_kept(below(kept_.size()));
    } else {
      rules_.control().note_synchronized(Duration(below(10)));
    }
  }

  void ask(Producer& p) {
    if (p.open != nullptr || p.place) return;
    static constexpr std::array<const char*, 4> kKinds{"a", "b", "c", "d"};
    const char* kind = kKinds.at(below(4) == 0 ? below(4) : p.number - 1);
    p.place.emplace();
    if (below(2) == 0) p.place->hint = Bytes{p.largest * (below(4) == 0 ? 4 : 1)};
    std::ranges::fill(p.others, Other{});
    rules_.join(*p.place, kind, p.number, pressure(), p.weight);
    p.joined_at = ran_;
    const std::uint64_t bytes = p.place->bytes.count;
    p.ahead = p.asked = (bytes != 0 ? bytes : most_held_) * kUnits / p.weight;
    if (!p.place->is_newcomer) p.ahead = 0;
    for (const Producer& other : producers_) {
      if (p.place->is_newcomer && other.place && other.place->is_newcomer) {
        p.ahead = std::max(p.ahead, other.asked);
      }
    }
  }

  /// The first in line looks; `grace_over` if it has waited long enough for open batches.
  void look(bool grace_over) {
    const auto found = std::ranges::find_if(
        producers_, [&](const Producer& p) { return p.place && rules_.first() == &*p.place; });
    if (found == producers_.end()) {
      expect(rules_.line().size() == 0, "somebody waits, and nobody is first");
      return;
    }
    Applicant& place = *found->place;
    place.grace_over = grace_over;
    const AdmissionState state = rules_.state_of(place, false, pressure());
    const Decision decision = rules_.decide(state);
    const bool nothing = submitted_.empty() && open_count() == 0;
    const bool open_alone = submitted_.empty() && open_count() != 0;
    const bool room = fits(state.estimate.count);
    expect(state.live.count == live(), "what is live");
    expect(!nothing || decision == Decision::kAdmit, "a wait with nothing in flight");
    switch (decision) {
      case Decision::kWaitSoft:
        ++counts_.held_back;
        held_back(place);
        [[fallthrough]];
      case Decision::kWaitShare:
        expect(!submitted_.empty() && room, "held back beside no queue");
        return;
      case Decision::kWaitHard:
        expect(!submitted_.empty() && !room, "a wait for room that is there");
        return;
      case Decision::kWaitOpen:
        expect(open_alone && !room && !grace_over, "a grace for nothing");
        return;
      case Decision::kAdmit:
        expect(nothing || room, "admitted beyond the budget");
        counts_.alone += nothing ? 1 : 0;
        break;
      case Decision::kForce:
        expect(open_alone && !room && grace_over, "forced in without need");
        ++counts_.forced;
        for (Producer& p : producers_) {
          if (p.open != nullptr) p.lapsed = p.open->lapsed = true;
        }
        break;
      default:
        expect(false, "no decision for the first in line");
        return;
    }
    admit(*found, state.estimate);
  }

  /// Whether time counts, and the device has not run the share of all others since it joined.
  [[nodiscard]] bool may_be_passed_over(const Producer& p) const {
    std::uint32_t weights = 0;
    for (const Producer& producer : producers_) weights += producer.weight;
    return time_counts_ && ran_ - p.joined_at < kLongest * weights;
  }

  void held_back(Applicant& place) {
    place.held_back += Duration(below(20));
    place.released = now_;
  }

  void admit(Producer& p, Bytes estimate) {
    held_back_ += p.place->held_back;
    p.open = &rules_.admit(*p.place, estimate, pressure());
    p.place.reset();
    p.estimate = p.open->estimate.count;
    p.net = p.peak = p.freed = p.pending = 0;
    p.lapsed = false;
    ++counts_.admitted;
    for (Producer& waits : producers_) {
      if (!waits.place || may_be_passed_over(waits)) continue;
      waits.others.at(p.number - 1).counts = true;
      counts_.overdue += time_counts_ ? 1 : 0;
    }
  }

  void allocate(Producer& p, std::uint64_t bytes) {
    if (p.open == nullptr) return;
    if (held() + bytes > budget_) {
      ++counts_.ran_out;
      return;
    }
    p.net += bytes;
    p.peak = std::max(p.peak, p.net);
    p.lapsed = false;
    rules_.ledger().note_allocated({p.open, p.open->serial}, Bytes{bytes}, below(4) == 0);
  }

  void free_some(Producer& p) {
    if (p.open == nullptr || p.net == 0) return;
    const std::uint64_t bytes = 1 + below(p.net);
    const bool awaits = below(2) == 0;
    p.net -= bytes;
    p.freed += awaits ? bytes : 0;
    p.pending += awaits ? bytes : 0;
    rules_.ledger().note_freed({p.open, p.open->serial}, Bytes{bytes}, awaits);
  }

  void close(Producer& p) {
    if (p.open == nullptr) return;
    if (const auto released = p.open->released) {
      most_lead_ = std::max(most_lead_, Duration(now_ - *released));
    }
    std::array<Point, kStreamRoles> points{};
    const StreamRole role = below(3) == 0 ? StreamRole::kCopyIn : StreamRole::kCompute;
    p.open->touched.at(index_of(role)) = true;
    points.at(index_of(role)) = {StreamId{1 + index_of(role)}, ++closed_};
    const Duration gap(below(10));
    gaps_ += gap;
    const Duration device_time(1 + below(kLongest.count()));
    p.open->note_ran(role, {.device_time = device_time, .gap = gap, .starved = gap, .end = now_});
    rules_.close(*p.open, points, below(8) != 0, now_);

    submitted_.push_back({.device_time = device_time, .freed = p.freed, .pending = p.pending});
    if (p.net != 0) kept_.push_back({.batch = {p.open, p.open->serial}, .bytes = p.net});
    // What it counted at first, and what it turned out to hold, for its weight.
    // Nothing counts as what a batch held before, so at least a byte.
    most_held_ = std::max({most_held_, p.estimate, p.peak});
    const auto charge_of = [&p](std::uint64_t bytes) { return bytes * kUnits / p.weight; };
    const std::uint64_t charge = charge_of(std::max<std::uint64_t>(p.peak, 1));
    const bool held_nothing = p.estimate == 0 || p.peak == 0;
    const std::uint64_t most = held_nothing ? most_held_ : std::max(p.estimate, p.peak);
    p.charge = std::max(p.charge, charge_of(most));
    p.open = nullptr;
    for (Producer& waits : producers_) {
      Other& other = waits.others.at(p.number - 1);
      if (!waits.place || !std::exchange(other.counts, false)) continue;
      ++counts_.overtaken;
      other.bytes += charge;
      expect(other.bytes <= std::max(waits.charge, waits.ahead) + p.charge, "a waiter starves");
    }
  }

  /// The device passes what an open batch freed, or the next submitted batch.
  void pass() {
    Producer& p = producers_[below(producers_.size())];
    if (p.open != nullptr && p.pending != 0) {
      p.pending = 0;
    } else if (passed_ < submitted_.size()) {
      submitted_[passed_++].pending = 0;
    }
  }

  void settle() {
    std::array<std::uint64_t, kStreamRoles> passed{};
    passed.fill(closed_ - submitted_.size() + passed_);
    rules_.settle(passed);
    for (std::size_t i = 0; i < passed_; ++i) ran_ += submitted_[i].device_time;
    submitted_.erase(submitted_.begin(), submitted_.begin() + static_cast<std::ptrdiff_t>(passed_));
    passed_ = 0;
    if (rules_.control().statistics().caused_idle > Duration{}) has_caused_ = true;
  }

  void cancel(Producer& p) {
    if (!p.place) return;
    const AdmissionState state = rules_.state_of(*p.place, true, pressure());
    expect(rules_.decide(state) == Decision::kRefuse, "a cancelled batch goes on");
    rules_.line().leave(*p.place);
    p.place.reset();
    ++counts_.cancelled;
  }

  void free_kept(std::size_t which) {
    rules_.ledger().note_freed(kept_[which].batch, Bytes{kept_[which].bytes}, false);
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  /// Ends everything. Each turn must admit one: nothing else is in flight.
  void finish() {
    for (std::size_t turns = rules_.line().size() + 1; turns-- > 0 && !wrong_;) {
      for (Producer& p : producers_) close(p);
      for (Submitted& batch : submitted_) batch.pending = 0;
      passed_ = submitted_.size();
      settle();
      check();
      const std::size_t waiting = rules_.line().size();
      look(false);
      expect(waiting == 0 || rules_.line().size() + 1 == waiting, "the line does not move");
    }
    while (!kept_.empty()) free_kept(0);
    check();
    expect(rules_.line().size() == 0, "somebody still waits");
    expect(rules_.ledger().charged() == Bytes{} && held() == 0, "something is still charged");
    counts_.caused += has_caused_ ? 1 : 0;
  }

  std::minstd_rand random_;
  static constexpr Duration kLongest{30};  ///< batch on the device
  /// Whether a producer with much queued device time is passed over.
  bool time_counts_ = false;
  const RunAhead chosen_;
  AdmissionRules rules_;
  Counts& counts_;
  std::uint64_t budget_ = 0;
  std::vector<Producer> producers_;
  std::vector<Submitted> submitted_;  ///< in closing order
  std::vector<Kept> kept_;
  std::size_t passed_ = 0;       ///< of `submitted_`, by the device
  std::uint64_t closed_ = 0;     ///< the last point
  std::uint64_t most_held_ = 1;  ///< by a batch, or expected of it
  AdmissionRules::Time now_{Duration(1)};
  Duration held_back_{};  ///< sum of the soft stalls of admitted batches
  Duration gaps_{};       ///< sum of idle gaps
  Duration ran_{};        ///< device time of settled batches
  Duration most_lead_{};
  bool has_caused_ = false;
  std::optional<std::string> wrong_;
};

std::uint64_t schedules() {
  constexpr std::uint64_t kDefault = 8000;
  const char* text = std::getenv("WEIR_TEST_SCHEDULES");
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : kDefault;
}

TEST(AdmissionRulesSchedules, SumsAgreeNobodyStarvesAndTheLineMovesInEveryRandomSchedule) {
  const std::uint64_t first = testing::random_seed();
  Counts counts;
  for (std::uint64_t i = 0; i < schedules(); ++i) {
    const auto wrong = Schedule(first + i, counts).run(60);
    if (wrong) FAIL() << *wrong << "; " << testing::seed_message(first + i);
  }
  RecordProperty("steps", std::to_string(counts.steps));
  EXPECT_GT(counts.admitted, schedules());
  EXPECT_GT(counts.alone, schedules() / 2);
  for (const std::uint64_t seen : {counts.forced, counts.cancelled, counts.held_back, counts.caused,
                                   counts.ran_out, counts.overtaken}) {
    EXPECT_GT(seen, schedules() / 20) << "hardly ever seen";
  }
}

// Long enough for waiters to be passed over as long as the rules allow.
TEST(AdmissionRulesSchedules, NobodyIsPassedOverForLongInLongSchedules) {
  const std::uint64_t first = testing::random_seed();
  Counts counts;
  for (std::uint64_t i = 0; i < schedules() / 40; ++i) {
    const auto wrong = Schedule(first + i, counts).run(3000);
    if (wrong) FAIL() << *wrong << "; " << testing::seed_message(first + i);
  }
  EXPECT_GT(counts.overdue, 0U);
}

}  // namespace
}  // namespace weir
