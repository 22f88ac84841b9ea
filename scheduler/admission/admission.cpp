// The line of waiting batches and what its waiters sleep on. One long file, because it holds one
// set of states under one lock: whoever changes a state must wake the right sleeper.

#include "scheduler/admission/admission.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/time_after.hpp"
#include "scheduler/admission/admission_rules.hpp"
#include "scheduler/admission/waking.hpp"
#include "scheduler/ledger/batch_timeline.hpp"

namespace weir {
namespace {

std::string describe(const Ticket& ticket) {
  return "'" + ticket.kind->name + "', begun at " + ticket.where.file + ":" +
         std::to_string(ticket.where.line);
}

std::string describe_all(const std::vector<Ticket*>& tickets) {
  std::string text;
  for (const Ticket* ticket : tickets) text += (text.empty() ? "" : "; ") + describe(*ticket);
  return text;
}

/// Returns what a batch of that decision waits for; nothing if it does not wait.
std::optional<TimelineStall> stall_of(Decision decision) {
  switch (decision) {
    case Decision::kWaitSoft:
      return TimelineStall::kRunAhead;
    case Decision::kWaitTurn:
    case Decision::kWaitShare:
      return TimelineStall::kTurn;
    case Decision::kWaitOpen:
    case Decision::kWaitHard:
      return TimelineStall::kBudget;
    default:
      return std::nullopt;
  }
}

}  // namespace

/// Returns the calling thread's condition variable. A thread sleeps in one place at a time.
const std::shared_ptr<Condition>& Admission::own_sleep() {
  auto& own = thread_scratch<std::shared_ptr<Condition>>();
  if (own == nullptr) own = std::make_shared<Condition>();
  return own;
}

/// A place in the line, given up on every way out. The lock guards its fields once it is in the
/// line.
///
/// Leaving the line wakes the next first waiter, and so does a waiter that finds another one first.
/// No other waiter is woken for a turn. So one waiter always looks again without a turn: the first,
/// or one that was first when it last looked.
class Admission::InLine : public Applicant {
 public:
  InLine(Admission& admission, std::string_view of, const BatchOptions& told, CallSite begun,
         std::uint32_t its_number) noexcept
      : name(of), options(told), where(begun), number(its_number), admission_(admission) {
    hint = told.hint;
    weight = told.weight;
  }
  ~InLine() {
    if (kind == nullptr) return;
    Waking lock(admission_.mutex_);
    if (stalled) ++admission_.counts_.stalled;
    admission_.rules_.leave(*this);
    if (admission_.waits_for_open_ == this) admission_.waits_for_open_ = nullptr;
    admission_.note_listeners();
    admission_.wake_first(lock);
  }
  InLine(const InLine&) = delete;
  InLine& operator=(const InLine&) = delete;

  void nudge(Waking& lock) noexcept {
    nudged = true;
    lock.wake(asleep_on);
  }

  const std::string_view name;
  const BatchOptions& options;
  const CallSite where;
  const std::uint32_t number;            ///< of the batch in the process
  Bytes needs;                           ///< the budget that it would fit in
  std::chrono::nanoseconds patience{};   ///< how long it waits for others, once it has decided to
  bool stalled = false;                  ///< it has waited
  bool ran_out = false;                  ///< a wait for the device has lasted to the end
  bool nudged = false;                   ///< something happened since it looked
  std::shared_ptr<Condition> asleep_on;  ///< its thread's; null: it is awake

  /// Whether it is stopped, or has waited for the device as long as it may.
  [[nodiscard]] bool is_over() const { return ran_out || options.stop.stop_requested(); }

  // While it waits for open batches:
  OpenGrace grace;
  Pressure pressure;         ///< the pool's pressure before the last look
  bool looks_again = false;  ///< it wakes again before the grace ends

 private:
  Admission& admission_;
};

/// A wait for one cause.
struct Admission::Wait {
  TimelineStall cause;
  Clock::time_point start;
  TimelineSlice slice{};
};

Admission::Admission(MemoryStatistics& memory, const BatchStreams& streams, Policy policy,
                     RunAhead run_ahead, std::chrono::nanoseconds grace, std::uint64_t first)
    : memory_(memory), streams_(streams), policy_(policy), grace_(grace), rules_(run_ahead, first) {
  enlist();
}

TicketRef Admission::open(std::string_view name, const BatchOptions& options, CallSite where) {
  const std::uint32_t number = next_batch_number();
  if (policy_ != Policy::kThrottled) {
    const Points passed = look_at_device();
    const Lock lock(mutex_);
    settle(passed);
    Ticket& ticket = rules_.open_unheld(name, where, number);
    publish_counts();
    ticket.thread = this_thread_number();
    ticket.stop = options.stop;
    note_admission(ticket, TimelineAdmission::kAdmitted);
    return TicketRef{&ticket, ticket.serial};
  }
  InLine place(*this, name, options, where, number);
  std::optional<Wait> wait;
  for (;;) {
    Decision decision = Decision::kAdmit;
    const auto ticket = try_admit(place, look_at_device(), decision);
    if (ticket && !wait) return *ticket;                    // without a look at the clock
    const auto decided = std::chrono::steady_clock::now();  // ends a wait and begins the next
    if (wait && wait->cause != stall_of(decision)) {
      count_stall(place, *wait, decided);
      wait.reset();
    }
    if (ticket) return *ticket;
    if (decision == Decision::kRefuse) {
      throw Cancelled("begin_batch '" + std::string(name) + "': the wait was cancelled");
    }
    const bool for_room = decision == Decision::kWaitHard || decision == Decision::kWaitOpen;
    if (for_room && memory_.raise_budget_to(place.needs)) continue;
    const bool is_held_back = for_room || decision == Decision::kWaitSoft;
    if (is_held_back && let_forgotten_lapse()) continue;
    if (!wait) wait.emplace(Wait{.cause = *stall_of(decision), .start = decided});
    place.stalled = true;
    const auto before = std::chrono::steady_clock::now();
    if (decision == Decision::kWaitTurn || decision == Decision::kWaitShare) {
      wait_for_others(place);
    } else if (decision == Decision::kWaitOpen) {
      wait_for_open(place);
    } else {
      wait_for_device(place, decision);
    }
    place.note_waited(decision, Clock::now() - before);
  }
}

AdmissionState Admission::state_of(const InLine& place, const Pressure& pressure) const {
  return rules_.state_of(place, place.is_over(), pressure);
}

std::optional<TicketRef> Admission::try_admit(InLine& place, const Points& passed,
                                              Decision& decision) {
  TicketRef ticket;
  std::string warning;
  {
    Waking lock(mutex_);
    settle(passed);
    const std::uint64_t looked = given_back_.load();
    place.pressure = memory_.pressure();
    if (place.kind == nullptr) rules_.apply(place, place.name, this_thread_number());
    if (waits_for_open_ == &place) {
      waits_for_open_ = nullptr;
      note_listeners();
    }
    place.nudged = false;
    place.grace.observe(rules_.ledger().oldest_kept(), grace_);
    place.grace_over = place.grace.over();
    const auto answer = rules_.ask(place, place.is_over(), place.pressure);
    const AdmissionState& state = answer.state;
    decision = answer.decision;
    place.needs = state.pressure.held + state.unspent + state.estimate;
    if (decision == Decision::kWaitOpen) {
      waits_for_open_ = &place;  // set before sleeping, so that no news is missed
      note_listeners();
      if (given_back_.load() != looked) place.nudged = true;
    }
    if (decision == Decision::kWaitTurn) {
      place.patience = std::chrono::nanoseconds::max();
      wake_first(lock);  // it may have waited for this to come
    }
    if (decision == Decision::kWaitShare) {
      place.patience = rules_.patience(state);
      rules_.give_way(place);
    }
    const bool is_forced = decision == Decision::kForce;
    if (decision != Decision::kAdmit && !is_forced) return std::nullopt;
    warning = warning_of(answer, place);
    if (is_forced) rules_.lapse_promises();
    Ticket& opened = rules_.admit(place, state.estimate, place.pressure, place.where, place.number);
    place.kind = nullptr;
    ticket = {.ticket = &opened, .serial = opened.serial};
    publish_counts();
    opened.thread = place.producer;
    opened.stop = place.options.stop;
    if (place.waited_for_room) rules_.note_waited_for_memory();
    opened.stalled = place.stalled;
    if (opened.stalled) ++counts_.stalled;
    if (is_forced) ++counts_.forced;
    note_admission(opened, is_forced ? TimelineAdmission::kForced : TimelineAdmission::kAdmitted,
                   {.target = rules_.run_ahead().target, .pressure = place.pressure});
    wake_first(lock);
  }
  if (!warning.empty()) log(LogLevel::kWarn, warning);
  return ticket;
}

void Admission::wake_first(Waking& lock) noexcept {
  if (Applicant* first = rules_.first()) static_cast<InLine*>(first)->nudge(lock);
}

/// Called when a batch closed or memory was freed. Wakes the waiter if it can now go on, or if the
/// freed memory awaits the device, so that the waiter starts to poll for it.
void Admission::wake_who_waits_for_open(Waking& lock, bool awaiting) noexcept {
  if (waits_for_open_ == nullptr || waits_for_open_->nudged) return;
  InLine& place = *waits_for_open_;
  if (rules_.decide(state_of(place, memory_.pressure())) != Decision::kWaitOpen ||
      (awaiting && !place.looks_again)) {
    place.nudge(lock);
  }
}

/// Sleeps until `woken` is set or the pool has more room than `before` shows, and returns true;
/// false at `deadline` or if stopped. Polls, because the program may free blocks or raise limits in
/// the pool without telling admission.
bool Admission::sleep_for_room(Lock& lock, const bool& woken, const std::stop_token& stop,
                               std::chrono::steady_clock::time_point deadline,
                               const Pressure& before) {
  constexpr std::chrono::milliseconds kLookAgain{20};
  const auto is_woken = [&] { return woken; };
  if (woken) return true;
  ++counts_.sleeps;
  for (;;) {
    const auto until = std::min(deadline, std::chrono::steady_clock::now() + kLookAgain);
    if (own_sleep()->wait_until(lock, stop, until, is_woken)) return true;
    if (stop.stop_requested() || until == deadline) return false;
    const Pressure now = memory_.pressure();
    const bool freed = now.held < before.held || now.awaiting > before.awaiting;
    if (freed || now.budget > before.budget) return true;
  }
}

// Ends: the first in line waits at most for its patience; whoever comes before it wakes it again
// when it leaves the line. Another one waits until the first leaves, admitted or by an exception,
// and wakes the next; or until another one has become the first, and is woken by it. The waits
// below end, so the first always leaves.
void Admission::wait_for_others(InLine& place) {
  const auto until = time_after_now(place.patience);
  Lock lock(mutex_);
  place.asleep_on = own_sleep();
  const auto is_woken = [&] { return place.nudged; };
  if (!place.nudged) ++counts_.sleeps;
  (void)own_sleep()->wait_until(lock, place.options.stop, until, is_woken);
  place.asleep_on.reset();
}

// Ends: at the end of the grace, which begins again only when the oldest open batch has closed. Few
// are older than the waiter, and whoever overtakes it in the line is younger. With none open there
// is no wait.
void Admission::wait_for_open(InLine& place) {
  // Freed memory may await the device, and the device wakes nobody when it is done.
  constexpr std::chrono::milliseconds kLookAgain{1};
  Lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  place.looks_again = memory_.statistics().awaiting.current.count != 0;
  const auto most = place.looks_again ? std::min<Clock::duration>(place.grace.left(), kLookAgain)
                                      : place.grace.left();
  const auto until = time_after(now, most);
  place.asleep_on = own_sleep();
  (void)sleep_for_room(lock, place.nudged, place.options.stop, until, place.pressure);
  place.asleep_on.reset();
  place.grace.note_waited(Clock::now() - now);
}

// Ends: the device finishes submitted work by itself.
void Admission::wait_for_device(InLine& place, Decision decision) {
  std::optional<Point> point;
  {
    const Lock lock(mutex_);
    point = rules_.point_to_await(place, decision);
  }
  if (point) {
    const WaitLimit limit{.stop = place.options.stop, .until = place.options.until};
    place.ran_out = !streams_.progress.wait(*point, limit) && limit.over();
  } else {
    record_missing();  // throws if it fails again, since nothing would end the wait
  }
}

Owner Admission::owner_here() const {
  if (open_.load(std::memory_order_relaxed) == 0) return {};  // the thread knows of its own batches
  const std::uint64_t thread = this_thread_number();
  const Lock lock(mutex_);
  for (Ticket* const ticket : rules_.ledger().open_tickets()) {
    const TicketRef ref{ticket, ticket->serial};
    if (ticket->thread == thread && ref.accepts()) return {ref, ticket->stop};
  }
  return {};
}

void Admission::close(TicketRef ref, bool learn) noexcept {
  std::array<Point, kStreamRoles> points{};
  bool missing = false;
  for (const std::size_t role : ref.ticket->touched) {
    const StreamId stream = streams_.ids.at(role);
    points.at(role) = {stream, Ledger::kUnrecorded};
    try {
      points.at(role) = streams_.progress.record(stream);
    } catch (const std::exception& error) {
      missing = true;
      log(LogLevel::kWarn, std::string("a batch's point is recorded later: ") + error.what());
    }
  }
  Points passed{};
  try {
    // Nothing is queued behind fewer than two.
    if (submitted_.load(std::memory_order_relaxed) >= 2) passed = passed_by_device();
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("how far the device is, is not known: ") + error.what());
  }
  Waking lock(mutex_);
  if (!rules_.ledger().is_open(ref)) return;
  ref.ticket->points = points;
  rules_.close(*ref.ticket, learn, passed);
  publish_counts();
  if (missing) missing_points_.store(true, std::memory_order_relaxed);
  counts_.most_submitted = std::max(counts_.most_submitted, rules_.ledger().submitted());
  wake_who_waits_for_open(lock, false);
  fail_youngest(lock);  // the others may all stand in allocations
}

void Admission::record_missing() {
  StreamRoleSet roles;
  std::uint64_t closed = 0;
  {
    const Lock lock(mutex_);
    closed = rules_.ledger().closed();
    roles = rules_.ledger().unrecorded();
    missing_points_.store(!roles.empty(), std::memory_order_relaxed);
  }
  for (const std::size_t role : roles) {
    const Point point = streams_.progress.record(streams_.ids.at(role));
    const Lock lock(mutex_);
    rules_.ledger().note_recorded(role, point, closed);
  }
}

Admission::Points Admission::passed_by_device() const {
  Points passed{};
  for (std::size_t i = 0; i < kStreamRoles; ++i) {
    const StreamId stream = streams_.ids.at(i);
    if (stream != StreamId{}) passed.at(i) = streams_.progress.passed(stream);
  }
  return passed;
}

Admission::Points Admission::look_at_device() {
  try {
    if (missing_points_.load(std::memory_order_relaxed)) record_missing();
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("a batch's point is not recorded yet: ") + error.what());
  }
  const Points passed = passed_by_device();
  memory_.poll();  // after reading `passed`, so that the frees of settled batches have reached the
                   // pool
  return passed;
}

void Admission::settle() {
  const Points passed = look_at_device();
  const Lock lock(mutex_);
  settle(passed);
}

void Admission::settle(const Points& passed) {
  rules_.settle(passed);
  publish_counts();
}

void Admission::publish_counts() noexcept {
  open_.store(rules_.ledger().open_count(), std::memory_order_relaxed);
  submitted_.store(rules_.ledger().submitted(), std::memory_order_relaxed);
}

void Admission::note_synchronized() {
  settle();  // what was lost before still counts
  const Lock lock(mutex_);
  rules_.note_synchronized(this_thread_number());
}

bool Admission::let_forgotten_lapse() {
  std::string text;
  {
    const Lock lock(mutex_);
    const Ticket* ticket = rules_.ledger().take_forgotten(std::chrono::steady_clock::now(), grace_);
    if (ticket == nullptr) return false;
    text = "batch " + describe(*ticket) + ", is still open but has allocated nothing while " +
           std::to_string(Ledger::kManyBatches) +
           " others were closed, and for the longest allowed wait. It blocks other batches, so " +
           format_bytes(ticket->estimate) + " are no longer reserved for it. Is it ever closed?";
  }
  log(LogLevel::kWarn, text);
  return true;
}

std::string Admission::warning_of(const AdmissionRules::Answer& answer,
                                  const InLine& place) noexcept {
  const AdmissionState& state = answer.state;
  const auto& [held, budget] = std::pair(state.pressure.held, state.pressure.budget);
  const bool is_alone = state.submitted == 0 && state.open == 0;
  // The first footprint may include weights, which the second batch does not create again.
  const bool lacks_room =
      is_alone && !warned_ && place.kind->given_back && held + state.estimate > budget;
  const bool is_forced = answer.decision == Decision::kForce;
  if (!lacks_room && !is_forced) return {};
  try {
    const std::string batch =
        "'" + std::string(place.name) + "' batch (" + format_bytes(state.estimate) + ")";
    if (is_forced) {
      return "a " + batch + " goes on without room: after the longest allowed wait, " +
             format_bytes(held) + " of " + format_bytes(budget) + " are held and " +
             format_bytes(state.unspent) + " more are promised to open batches (" +
             describe_all(rules_.ledger().open_tickets()) + ")";
    }
    std::string text = "live memory (" + format_bytes(held) + ") leaves no room for a " + batch +
                       " in the budget (" + format_bytes(budget) +
                       "): one batch at a time; biggest holders: " + memory_.holders(5);
    warned_ = true;
    return text;
  } catch (const std::bad_alloc&) {
    return {};  // the batch goes on all the same
  }
}

void Admission::count_stall(const InLine& place, const Wait& wait, Clock::time_point end) {
  if (TimelineSink* const sink = wait.slice.sink()) {
    wait.slice.write({.batch = place.number,
                      .name = sink->name(place.name),
                      .site = sink->site(place.where.file, place.where.line),
                      .kind = TimelineKind::kStall,
                      .detail = static_cast<std::uint8_t>(wait.cause)});
  }
  const Lock lock(mutex_);
  Stalls& stalls = wait.cause == TimelineStall::kTurn       ? counts_.turn
                   : wait.cause == TimelineStall::kRunAhead ? counts_.soft
                                                            : counts_.budget;
  ++stalls.count;
  stalls.total += end - wait.start;
}

void Admission::add_figures(LiveFigures& figures) const {
  const AdmissionStatistics now = statistics();
  figures.open += now.open;
  figures.submitted += now.submitted;
  figures.settled += now.settled;
  DeviceFigures* const device = figures.of(memory_.device());
  Stalls all = now.budget;
  for (const Stalls& stalls : {now.soft, now.turn}) all += stalls;
  figures.stalls += now.stalled;
  figures.stalled += all.total;
  if (device == nullptr) return;
  // The pool adds those of allocations.
  device->waits += all.count - now.in_allocations.count;
  device->waited += all.total - now.in_allocations.total;
}

void Admission::record_live(TimelineSink& sink) {
  const Lock lock(mutex_);
  for (const SettledUnheard& batch : rules_.ledger().take_settled_unheard()) {
    note_settled_unheard(sink, batch);
    rules_.ledger().unuse(*batch.kind);
  }
  for (Ticket* ticket : rules_.ledger().open_tickets()) note_live(sink, *ticket);
  for (Ticket* ticket : rules_.ledger().submitted_tickets()) note_live(sink, *ticket);
}

AdmissionStatistics Admission::statistics() const {
  const Lock lock(mutex_);
  AdmissionStatistics counts = counts_;
  counts.open = rules_.ledger().open_count();
  counts.submitted = rules_.ledger().submitted();
  counts.settled = rules_.ledger().settled();
  counts.charged = rules_.ledger().charged(memory_.pressure().awaiting);
  counts.run_ahead = rules_.run_ahead();
  return counts;
}

std::optional<Bytes> Admission::expected(std::string_view kind) {
  settle();
  const Lock lock(mutex_);
  Ledger& ledger = rules_.ledger();
  BatchKind& of = ledger.use(kind);
  ledger.unuse(of);
  return ledger.expected(of, {});
}

}  // namespace weir
