#include "scheduler/admission.hpp"

#include <algorithm>
#include <string>

#include "allocator/error.hpp"
#include "allocator/log.hpp"

namespace weir {
namespace {

/// The calling thread as a producer of batches.
std::uint64_t this_producer() {
  static std::atomic<std::uint64_t> last{0};
  thread_local std::uint64_t producer = ++last;
  return producer;
}

}  // namespace

/// A place in the line, given up however its waiter leaves.
class Admission::InLine {
 public:
  explicit InLine(Admission& admission) noexcept : admission_(admission) {}
  ~InLine() {
    if (kind != nullptr && !served) {
      const Lock lock(admission_.mutex_);
      admission_.line_.leave(place);
      others = admission_.line_.size() != 0;
    }
    if (others) admission_.changed_.notify_all();  // the next in line may be first now
  }
  InLine(const InLine&) = delete;
  InLine& operator=(const InLine&) = delete;

  BatchKind* kind = nullptr;  ///< null: not in the line yet
  FairLine::Place place;
  bool served = false;
  bool others = false;  ///< were in the line when this left it

 private:
  Admission& admission_;
};

Admission::Admission(Pool& pool, const BatchStreams& streams, Policy policy, RunAhead run_ahead,
                     std::chrono::nanoseconds grace)
    : pool_(pool), streams_(streams), policy_(policy), run_ahead_(run_ahead), grace_(grace) {}

Bytes Admission::estimate(const BatchKind& kind, const BatchOptions& options,
                          const Pressure& pressure) const {
  if (options.hint) return *options.hint;
  if (kind.footprint) return *kind.footprint;
  // Never seen: all that is not live, and live is what no unsettled batch holds.
  return minus_or_zero(pressure.budget, minus_or_zero(pressure.held, ledger_.in_flight()));
}

TicketRef Admission::begin(BatchKind& kind, Bytes estimate) {
  Ticket& ticket = ledger_.open(kind, estimate);
  return {&ticket, ticket.serial};
}

TicketRef Admission::open(std::string_view name, const BatchOptions& options) {
  settle();
  if (policy_ != Policy::kThrottled) {
    const Lock lock(mutex_);
    BatchKind& kind = ledger_.kind(name);
    return begin(kind, kind.footprint.value_or(Bytes{}));
  }
  InLine place(*this);
  std::optional<Decision> reason;
  std::chrono::steady_clock::time_point start;
  for (;;) {
    Decision decision = Decision::kAdmit;
    const auto ticket = try_admit(name, options, place, decision);
    if (ticket) {
      if (reason) count_stall(*reason, std::chrono::steady_clock::now() - start);
      return *ticket;
    }
    if (decision == Decision::kRefuse) {
      throw Cancelled("begin_batch '" + std::string(name) + "': the wait was cancelled");
    }
    if (!reason) start = std::chrono::steady_clock::now();
    if (!reason || decision != Decision::kWaitTurn) reason = decision;
    if (decision == Decision::kWaitTurn) {
      wait_turn(place, options.stop);
    } else {
      wait_for_device(options.stop);
    }
    settle();
  }
}

std::optional<TicketRef> Admission::try_admit(std::string_view name, const BatchOptions& options,
                                              InLine& place, Decision& decision) {
  AdmissionState state;
  std::optional<TicketRef> ticket;
  bool known = false;
  {
    const Lock lock(mutex_);
    const Pressure pressure = pool_.pressure();
    if (place.kind == nullptr) {  // joined here, so that the first look takes one lock
      BatchKind& kind = ledger_.kind(name);
      line_.join(place.place, this_producer(), estimate(kind, options, pressure));
      place.kind = &kind;
    }
    state = {.first_in_line = line_.is_first(place.place),
             .cancelled = options.stop.stop_requested(),
             .held = pressure.held,
             .budget = pressure.budget,
             .unspent = ledger_.unspent(),
             .estimate = estimate(*place.kind, options, pressure),
             .submitted = ledger_.submitted(),
             .queued_time = ledger_.queued_time()};
    decision = decide(state, run_ahead_);
    if (decision != Decision::kAdmit) return std::nullopt;
    known = place.kind->footprint.has_value();
    ticket = begin(*place.kind, state.estimate);
    line_.serve(place.place);
    place.served = true;
    place.others = line_.size() != 0;
  }
  if (known) warn_if_no_room(state, name);
  return ticket;
}

void Admission::wait_turn(const InLine& place, const std::stop_token& stop) {
  Lock lock(mutex_);
  changed_.wait(lock, stop, [&]() WEIR_REQUIRES(mutex_) { return line_.is_first(place.place); });
}

void Admission::wait_for_device(const std::stop_token& stop) {
  std::optional<Point> point;
  {
    const Lock lock(mutex_);
    point = ledger_.point_to_await(passed_);
  }
  if (point) {
    (void)streams_.progress.wait(*point, stop);
  } else {
    record_missing();  // throws if it still cannot be had: nothing here would end the wait
  }
}

void Admission::close(TicketRef ref, bool learn) noexcept {
  std::array<Point, kStreamRoles> points{};
  bool missing = false;
  for (const StreamRole role : kAllRoles) {
    const std::size_t i = index_of(role);
    if (!ref.ticket->touched.at(i)) continue;
    const StreamId stream = streams_.ids.at(i);
    points.at(i) = {stream, Ledger::kUnrecorded};
    try {
      points.at(i) = streams_.progress.record(stream);
    } catch (const std::exception& error) {
      missing = true;
      log(LogLevel::kWarn, std::string("a batch's point is recorded later: ") + error.what());
    }
  }
  bool awaited = false;
  {
    const Lock lock(mutex_);
    if (!ledger_.is_open(ref)) return;
    ledger_.close(*ref.ticket, points, learn);
    if (missing) missing_points_.store(true, std::memory_order_relaxed);
    ++given_back_;
    counts_.most_submitted = std::max(counts_.most_submitted, ledger_.submitted());
    awaited = in_grace_ != 0;
  }
  if (awaited) changed_.notify_all();
}

void Admission::record_missing() {
  std::array<bool, kStreamRoles> roles{};
  std::uint64_t closed = 0;
  {
    const Lock lock(mutex_);
    closed = ledger_.closed();
    roles = ledger_.unrecorded();
    const bool any = std::ranges::count(roles, true) != 0;
    missing_points_.store(any, std::memory_order_relaxed);
  }
  for (const StreamRole role : kAllRoles) {
    if (!roles.at(index_of(role))) continue;
    const Point point = streams_.progress.record(streams_.ids.at(index_of(role)));
    const Lock lock(mutex_);
    ledger_.note_recorded(role, point, closed);
  }
}

void Admission::settle() {
  try {
    if (missing_points_.load(std::memory_order_relaxed)) record_missing();
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("a batch's point is still to be recorded: ") + error.what());
  }
  std::array<std::uint64_t, kStreamRoles> passed{};
  for (std::size_t i = 0; i < kStreamRoles; ++i) {
    const StreamId stream = streams_.ids.at(i);
    if (stream != StreamId{}) passed.at(i) = streams_.progress.passed(stream);
  }
  pool_.poll();  // asks after `passed` was read: a settled batch's frees have reached the pool
  const Lock lock(mutex_);
  (void)ledger_.settle(passed);
  passed_ = passed;
}

void Admission::note_allocated(TicketRef ref, Bytes bytes) {
  const Lock lock(mutex_);
  ledger_.note_allocated(ref, bytes);
}

void Admission::note_freed(TicketRef ref, Bytes bytes, bool awaiting) noexcept {
  bool awaited = false;
  {
    const Lock lock(mutex_);
    ledger_.note_freed(ref, bytes, awaiting);
    ++given_back_;
    awaited = in_grace_ != 0;
  }
  if (awaited) changed_.notify_all();
}

bool Admission::is_open(TicketRef ref) const {
  const Lock lock(mutex_);
  return ledger_.is_open(ref);
}

bool Admission::await_older(TicketRef ref, std::chrono::steady_clock::time_point deadline) {
  Lock lock(mutex_);
  const std::uint64_t serial = ledger_.is_open(ref) ? ref.serial : UINT64_MAX;
  if (!ledger_.older_open(serial)) return false;
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t before = given_back_;
  ++in_grace_;
  const bool news = changed_.wait_until(
      lock, deadline, [&]() WEIR_REQUIRES(mutex_) { return given_back_ != before; });
  --in_grace_;
  ++counts_.grace.count;
  counts_.grace.total += std::chrono::steady_clock::now() - start;
  return news;
}

void Admission::warn_if_no_room(const AdmissionState& state, std::string_view kind) {
  if (state.submitted != 0 || state.unspent.count != 0) return;
  if (state.held + state.estimate <= state.budget || warned_.exchange(true)) return;
  log(LogLevel::kWarn, "live memory (" + format_bytes(state.held) + ") leaves no room for a '" +
                           std::string(kind) + "' batch (" + format_bytes(state.estimate) +
                           ") in the budget (" + format_bytes(state.budget) +
                           "): one batch at a time; biggest holders: " + pool_.holders());
}

void Admission::count_stall(Decision reason, std::chrono::nanoseconds time) {
  const Lock lock(mutex_);
  Stalls& stalls = reason == Decision::kWaitHard   ? counts_.hard
                   : reason == Decision::kWaitSoft ? counts_.soft
                                                   : counts_.turn;
  ++stalls.count;
  stalls.total += time;
}

AdmissionStatistics Admission::statistics() const {
  const Lock lock(mutex_);
  AdmissionStatistics counts = counts_;
  counts.open = ledger_.open_count();
  counts.submitted = ledger_.submitted();
  counts.settled = ledger_.settled();
  counts.charged = ledger_.charged();
  return counts;
}

}  // namespace weir
