// Random schedules of AdmissionRules, without a lock, a thread or a clock: producers that stay and
// newcomers that never return ask, open, allocate, free, close and cancel in any order, and a
// device passes what was submitted at any moment. After each step the rules are compared with sums
// that are kept apart from them. One long file, because every step changes the whole model.
//
// WEIR_TEST_SCHEDULES sets how many (a million takes some minutes), WEIR_TEST_SEED the first one.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
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
  std::uint64_t admitted = 0;
  std::uint64_t alone = 0;  ///< of these, with nothing in flight
  std::uint64_t forced = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t held_back = 0;  ///< looks that waited for the run-ahead target
  std::uint64_t caused = 0;     ///< schedules in which holding back cost time
  std::uint64_t ran_out = 0;    ///< allocations without room
  std::uint64_t overtaken = 0;  ///< batches that went before one that had come earlier
  std::uint64_t newcomers = 0;  ///< of these, of threads that never return
  std::uint64_t gave_way = 0;   ///< looks that waited for others to come back
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, Counts& counts)
      : random_(seed),
        chosen_(any_target()),
        first_(2 + below(5)),
        rules_(chosen_, first_),
        counts_(counts) {
    budget_ = 4 + below(29);
    producers_.resize(1 + below(6));
    for (std::size_t p = 0; p < producers_.size(); ++p) {
      producers_[p].number = p;
      producers_[p].stays = below(2) == 0;
      become_new(producers_[p]);
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
  static constexpr Duration kLongest{3000};  ///< batch on the device

  /// A thread that begins one batch after the other, or else threads that come one after the other:
  /// each begins one batch, and the next one comes whether or not that has ended.
  struct Producer {
    std::size_t number = 0;
    bool stays = false;
    std::uint32_t weight = 1;
    std::uint64_t largest = 0;  ///< of its batches
    std::optional<Applicant> place;
    std::uint64_t gave_way = UINT64_MAX;  ///< batches admitted when it last gave way
    std::uint64_t asked = 0;              ///< what its place counts, in units
    /// What each producer got while this one waits, for batches that came later, in units.
    std::vector<std::uint64_t> others;
  };
  struct Batch {
    TicketRef ref;
    std::size_t producer = 0;
    std::uint64_t largest = 0;
    std::uint64_t estimate = 0;
    std::uint64_t net = 0;      ///< once it has closed: what it has not freed
    std::uint64_t freed = 0;    ///< what it is charged for after it has closed
    std::uint64_t pending = 0;  ///< of that, not passed by the device
    bool lapsed = false;
    [[nodiscard]] std::uint64_t promised() const {
      return lapsed || net > estimate ? 0 : estimate - net;
    }
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  RunAhead any_target() {
    const std::uint64_t choice = below(4);
    if (choice == 0) return {.batches = std::nullopt};
    if (choice == 1) return {.batches = 1 + below(3), .time = Duration(below(2) == 0 ? 5000 : 0)};
    return {};
  }
  void become_new(Producer& p) {
    p.weight = static_cast<std::uint32_t>(below(4) == 0 ? 1 + below(4) : 1);
    p.largest = 1 + below(below(2) == 0 ? budget_ / 4 : budget_ + budget_ / 4);
  }
  void expect(bool holds, const char* what) {
    if (!holds && !wrong_) wrong_ = what;
  }

  // The sums that are kept apart.

  [[nodiscard]] static std::uint64_t sum_of(const std::vector<Batch>& all, auto value) {
    std::uint64_t sum = 0;
    for (const Batch& each : all) sum += std::invoke(value, each);
    return sum;
  }
  [[nodiscard]] std::uint64_t allocated() const { return sum_of(open_, &Batch::net); }
  [[nodiscard]] std::uint64_t promised() const { return sum_of(open_, &Batch::promised); }
  [[nodiscard]] std::uint64_t awaiting() const {
    return sum_of(open_, &Batch::pending) + sum_of(submitted_, &Batch::pending);
  }
  [[nodiscard]] std::uint64_t owed() const { return sum_of(submitted_, &Batch::freed); }
  [[nodiscard]] std::uint64_t live() const { return sum_of(kept_, &Batch::net); }
  [[nodiscard]] std::ptrdiff_t waiting() const {
    return std::ranges::count_if(producers_, [](const Producer& p) { return p.place.has_value(); });
  }
  [[nodiscard]] std::uint64_t held() const { return live() + allocated() + awaiting(); }
  [[nodiscard]] Pressure pressure() const {
    return {.held = {held()}, .budget = {budget_}, .awaiting = {awaiting()}};
  }
  /// Whether `estimate` fits beside all that is held and promised, or with no batch open beside
  /// live memory.
  [[nodiscard]] bool fits(std::uint64_t estimate) const {
    return held() + promised() + estimate <= budget_ ||
           (open_.empty() && live() + estimate <= budget_);
  }

  void check() {
    const Ledger& ledger = rules_.ledger();
    expect(ledger.open_count() == open_.size(), "the number of open batches");
    expect(ledger.submitted() == submitted_.size(), "the number of submitted batches");
    expect(ledger.allocated().count == allocated(), "what open batches hold");
    expect(ledger.unspent().count == promised(), "what open batches are promised");
    expect(ledger.charged().count == allocated() + promised() + owed(), "the sum of charges");
    expect(ledger.charged(Bytes{awaiting()}).count ==
               allocated() + promised() + std::min(owed(), awaiting()),
           "the sum of charges, of what still awaits the device");
    expect(held() <= budget_, "the schedule itself exceeds the budget");
    const RunAheadStatistics now = rules_.run_ahead();
    expect(now.caused_idle >= Duration{} && now.caused_idle <= std::min(held_back_, idle_),
           "time lost that nobody caused");
    if (!adapts(chosen_)) {
      expect(now.target == chosen_.time.value_or(Duration{}), "a chosen target moved");
      return;
    }
    expect(now.target >= Duration{} && now.target <= now.most, "the target");
    const Duration grown = now.caused_idle * RunAheadLimit::kGrowth;
    expect(now.most <= kLongest * (first_ - 2) + grown, "it grew by itself");
  }

  void step(std::uint64_t choice) {
    now_ += Duration(1 + below(4000));
    Producer& p = producers_[below(producers_.size())];
    if (choice < 4) {
      ask(p);
    } else if (choice < 7) {
      look(below(6) == 0);
    } else if (choice < 11) {
      if (!open_.empty()) work(open_[below(open_.size())]);
    } else if (choice < 13) {
      pass();
    } else if (choice < 14) {
      settle();
    } else if (choice < 15 && !kept_.empty()) {
      free_kept(below(kept_.size()));
    } else if (below(3) == 0) {
      cancel(p);
    } else {
      rules_.note_synchronized();
    }
  }

  void ask(Producer& p) {
    const bool has_open = std::ranges::count(open_, p.number, &Batch::producer) != 0;
    if (p.place || (p.stays && has_open)) return;
    std::string kind = std::to_string(below(4) == 0 ? below(4) : p.number);
    std::uint64_t thread = p.number + 1;
    if (!p.stays) {
      become_new(p);
      thread = ++last_thread_;
      if (below(2) == 0) kind = "new " + std::to_string(thread);
    }
    p.place.emplace();
    if (below(2) == 0) p.place->hint = Bytes{p.largest * (below(4) == 0 ? 4 : 1)};
    rules_.apply(*p.place, kind, thread);
    p.place->weight = p.weight;
    rules_.line_up(*p.place, pressure());
    if (p.place->bytes.count != 0) last_asked_ = p.place->bytes.count;
    p.asked = last_asked_ * kUnits / p.weight;
    p.others.assign(producers_.size(), 0);
  }

  /// The first in line looks; `grace_over` if it has waited long enough for open batches.
  void look(bool grace_over) {
    const auto found = std::ranges::find_if(
        producers_, [&](const Producer& p) { return p.place && rules_.first() == &*p.place; });
    if (found == producers_.end()) {
      expect(waiting() == 0 && rules_.first() == nullptr, "somebody waits, and nobody is first");
      return;
    }
    Applicant& place = *found->place;
    place.grace_over = grace_over;
    const AdmissionState state = rules_.state_of(place, false, pressure());
    const Decision decision = rules_.decide(state);
    const std::uint64_t in_flight = submitted_.size() + open_.size();
    const bool open_alone = submitted_.empty() && !open_.empty();
    const bool room = fits(state.estimate.count);
    const auto lapsed = static_cast<std::uint64_t>(std::ranges::count(open_, true, &Batch::lapsed));
    const bool enough =
        !adapts(chosen_) && soft_limit_reached(in_flight - lapsed, state.queued, chosen_);
    expect(state.live.count == live(), "what is live");
    expect(in_flight != 0 || decision == Decision::kAdmit, "a wait with nothing in flight");
    switch (decision) {
      case Decision::kWaitSoft:
        ++counts_.held_back;
        place.note_waited(decision, Duration(below(2000)));
        expect(!submitted_.empty() && room && (adapts(chosen_) || enough), "held back too early");
        return;
      case Decision::kWaitHard:
        expect(!submitted_.empty() && !room, "a wait for room that is there");
        return;
      case Decision::kWaitShare:
        ++counts_.gave_way;
        expect(!submitted_.empty() && room && !enough, "it gives way where it could not go on");
        expect(std::exchange(found->gave_way, admitted_) != admitted_, "it gives way for ever");
        expect(rules_.patience(state) <= state.queued, "the device runs dry meanwhile");
        rules_.give_way(place);
        place.note_waited(decision, Duration(below(2000)));
        return;
      case Decision::kWaitOpen:
        expect(open_alone && !room && !grace_over, "a grace for nothing");
        return;
      case Decision::kAdmit:
        expect(in_flight == 0 || room, "admitted beyond the budget");
        expect(submitted_.empty() || !enough, "admitted beyond the target");
        counts_.alone += in_flight == 0 ? 1 : 0;
        break;
      case Decision::kForce:
        expect(open_alone && !room && grace_over, "forced in without need");
        ++counts_.forced;
        for (Batch& batch : open_) {
          batch.lapsed = true;
          rules_.ledger().lapse(*batch.ref.ticket);
        }
        break;
      default:
        expect(false, "no decision for the first in line");
        return;
    }
    admit(*found, state.estimate);
  }

  void admit(Producer& p, Bytes estimate) {
    held_back_ += p.place->held_back;
    for (Producer& waits : producers_) {
      if (!waits.place || waits.place->arrival >= p.place->arrival) continue;
      ++counts_.overtaken;
      counts_.newcomers += p.stays ? 0 : 1;
      waits.others.at(p.number) += p.asked;
      expect(waits.others.at(p.number) <= waits.asked, "a waiter starves");
    }
    Ticket& ticket = rules_.admit(*p.place, estimate, pressure());
    p.place.reset();
    open_.push_back({.ref = {&ticket, ticket.serial},
                     .producer = p.number,
                     .largest = p.largest,
                     .estimate = ticket.estimate.count});
    ++counts_.admitted;
    ++admitted_;
    p.gave_way = UINT64_MAX;
  }

  /// The batch allocates, frees or closes.
  void work(Batch& batch) {
    const std::uint64_t choice = below(4);
    if (choice == 0) {
      close(batch);
    } else if (choice == 1 && batch.net != 0) {
      const std::uint64_t bytes = below(2) == 0 ? batch.net : 1 + below(batch.net);
      const bool awaits = below(2) == 0;
      batch.net -= bytes;
      batch.freed += awaits ? bytes : 0;
      batch.pending += awaits ? bytes : 0;
      rules_.ledger().note_freed(batch.ref, Bytes{bytes}, awaits);
    } else if (const std::uint64_t bytes = 1 + below(batch.largest); held() + bytes > budget_) {
      ++counts_.ran_out;
    } else {
      batch.net += bytes;
      batch.lapsed = false;
      rules_.ledger().note_allocated(batch.ref, Bytes{bytes});
      if (below(4) == 0) rules_.note_waited_for_memory(batch.ref);
    }
  }

  void close(Batch& batch) {
    Ticket& ticket = *batch.ref.ticket;
    const std::size_t role = below(kStreamRoles);
    std::array<Point, kStreamRoles> points{};
    ticket.touched.insert(kAllRoles.at(role));
    points.at(role) = {StreamId{1 + role}, ++closed_};
    Duration& ended = ended_.at(role);
    const Duration starved = ended == Duration{} ? ended : std::max(now_ - ended, Duration{});
    const Duration device_time(1 + below(kLongest.count()));
    ended = std::max(now_, ended) + device_time;
    idle_ += starved;
    ticket.note_ran(kAllRoles.at(role), {.device_time = device_time,
                                         .gap = starved,
                                         .starved = starved,
                                         .end = std::chrono::steady_clock::time_point(ended)});
    ticket.points = points;
    rules_.close(ticket, below(8) != 0, {});
    submitted_.push_back(batch);
    if (batch.net != 0) kept_.push_back(batch);
    open_.erase(open_.begin() + (&batch - open_.data()));
  }

  /// The device passes what an open batch freed, or the next submitted batch.
  void pass() {
    if (!open_.empty() && below(2) == 0) {
      open_[below(open_.size())].pending = 0;
    } else if (passed_ < submitted_.size()) {
      submitted_[passed_++].pending = 0;
    }
  }

  void settle() {
    AdmissionRules::Passed passed{};
    passed.fill(closed_ - submitted_.size() + passed_);
    rules_.settle(passed);
    submitted_.erase(submitted_.begin(), submitted_.begin() + static_cast<std::ptrdiff_t>(passed_));
    passed_ = 0;
  }

  void cancel(Producer& p) {
    if (!p.place) return;
    const AdmissionState state = rules_.state_of(*p.place, true, pressure());
    expect(rules_.decide(state) == Decision::kRefuse, "a cancelled batch goes on");
    rules_.leave(*p.place);
    p.place.reset();
    p.gave_way = UINT64_MAX;
    ++counts_.cancelled;
  }

  void free_kept(std::size_t which) {
    rules_.ledger().note_freed(kept_[which].ref, Bytes{kept_[which].net}, false);
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  /// Ends everything. Each turn must admit one: nothing else is in flight.
  void finish() {
    for (std::ptrdiff_t turns = waiting(); turns >= 0 && !wrong_; --turns) {
      while (!open_.empty()) close(open_.back());
      for (Batch& batch : submitted_) batch.pending = 0;
      passed_ = submitted_.size();
      settle();
      check();
      const std::ptrdiff_t before = waiting();
      look(false);
      expect(before == 0 || waiting() + 1 == before, "the line does not move");
    }
    while (!kept_.empty()) free_kept(0);
    check();
    expect(rules_.first() == nullptr, "somebody still waits");
    expect(rules_.ledger().charged() == Bytes{} && held() == 0, "something is still charged");
    counts_.caused += rules_.run_ahead().caused_idle > Duration{} ? 1U : 0U;
  }

  std::minstd_rand random_;
  const RunAhead chosen_;
  const std::uint64_t first_;
  AdmissionRules rules_;
  Counts& counts_;
  std::uint64_t budget_ = 0;
  std::vector<Producer> producers_;
  std::vector<Batch> open_;
  std::vector<Batch> submitted_;  ///< in closing order
  std::vector<Batch> kept_;       ///< which have closed and not freed all
  std::size_t passed_ = 0;        ///< of `submitted_`, by the device
  std::uint64_t closed_ = 0;      ///< the last point
  std::uint64_t last_asked_ = 1;  ///< bytes of the last that joined with any
  std::uint64_t admitted_ = 0;
  std::uint64_t last_thread_ = 100;  ///< of the newcomers
  Duration now_{};
  std::array<Duration, kStreamRoles> ended_{};
  Duration held_back_{};  ///< sum of the soft stalls of admitted batches
  Duration idle_{};       ///< sum of idle gaps
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
    // Some are long enough for the target to move.
    const auto wrong = Schedule(first + i, counts).run(i % 40 == 0 ? 2000 : 60);
    if (wrong) FAIL() << *wrong << "; " << testing::seed_message(first + i);
  }
  EXPECT_GT(counts.admitted, schedules());
  EXPECT_GT(counts.alone, schedules() / 2);
  for (const std::uint64_t seen : {counts.forced, counts.cancelled, counts.held_back, counts.caused,
                                   counts.ran_out, counts.overtaken, counts.newcomers}) {
    EXPECT_GT(seen, schedules() / 20) << "hardly ever seen";
  }
  EXPECT_GT(counts.gave_way, schedules() / 400) << "it needs a long schedule";
}

}  // namespace
}  // namespace weir
