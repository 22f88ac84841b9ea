// How a context serves requests and marks batches. One long file, because both pass through the
// same gate, fences and charges.

#include "tools/preload/context/arena.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/context/pace.hpp"
#include "tools/preload/context/room.hpp"

namespace weir::preload {
namespace {

constexpr std::uint64_t kMostGiveUps = 2;

/// Records that a launch was held back from the slice's beginning until now.
void note_pace(const TimelineSlice& slice, Pace reason, int device) noexcept {
  const auto stall = reason == Pace::kWaitSoft ? TimelineStall::kRunAhead : TimelineStall::kBudget;
  slice.write({.device = static_cast<std::uint16_t>(device + 1),
               .kind = TimelineKind::kPace,
               .detail = static_cast<std::uint8_t>(stall)});
}

/// How many marked batches the run-ahead begins with. A program that marks its batches has little
/// memory to spare, as a rule.
constexpr std::uint64_t kFirstBatches = 2;

}  // namespace

Arena::Arena(const Driver& driver, CUcontext context, Device& device, const Settings& settings)
    : driver_(driver),
      context_(context),
      device_(device),
      account_(device.account()),
      settings_(settings),
      fences_(driver, context),
      upstream_(driver, context, account_, fences_),
      pools_(upstream_, fences_, account_, settings),
      admission_(pools_, {.progress = fences_, .ids = {fences_.everything()}},
                 settings.policy.policy.value, settings.policy.run_ahead.value,
                 settings.max_wait.value, kFirstBatches) {
  follow_budget();
  pools_.look_out(settings.policy.policy.value == Policy::kThrottled);
}

Arena::~Arena() = default;

void Arena::follow_budget() {
  pools_.set_limits(account_.budget(), before_growth(running_out(settings_.policy.policy.value)));
}

/// Counts the waits for other pools of the device at its end.
class Arena::WaitsForOthers {
 public:
  WaitsForOthers(Arena& arena, const Room& room) noexcept : arena_(arena), room_(room) {}
  ~WaitsForOthers() {
    if (room_.waits().count == 0) return;
    const Lock lock(arena_.mutex_);
    arena_.for_others_.count += room_.waits().count;
    arena_.for_others_.total += room_.waits().total;
  }
  WaitsForOthers(const WaitsForOthers&) = delete;
  WaitsForOthers& operator=(const WaitsForOthers&) = delete;

 private:
  Arena& arena_;
  const Room& room_;
};

CUresult Arena::allocate(Call& call, CUdeviceptr& pointer, std::size_t bytes, StreamId stream,
                         std::string& report) noexcept {
  const bool for_all = stream == fences_.sync();
  Attempt attempt{.stream = stream, .for_all = for_all};
  Room room(device_, call.until(settings_.max_wait.value), &pools_.serving(stream));
  Stalls waits;
  const WaitsForOthers counted(*this, room);
  try {
    void* const found =
        obtain(room, attempt, {bytes}, for_all ? "cuMemAlloc" : "cuMemAllocAsync", waits);
    if (found == nullptr) pools_.fail(attempt);
    waits += room.waits();
    account_.note_served({bytes});
    if (batches_.load(std::memory_order_relaxed) != 0) charge(found, attempt.block, waits);
    pointer = reinterpret_cast<CUdeviceptr>(found);
    return CUDA_SUCCESS;
  } catch (const DriverError& error) {
    return error.code();
  } catch (const std::exception& error) {
    tell(attempt, room, error, report);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// The pool first tries without waits, since other pools may have room to release. Then it may hand
// over and wait, and room is made by waits for others.
void* Arena::obtain(Room& room, Attempt& attempt, Bytes bytes, std::string_view label,
                    Stalls& waits) {
  const StreamId stream = attempt.stream;
  bool patient = false;
  for (;;) {
    attempt.at_once = !patient;
    attempt.limit = room.limit();
    void* const found = pools_.try_allocate(bytes, stream, label, attempt);
    waits += {.count = attempt.waits, .total = attempt.waited};
    if (found != nullptr) return found;
    attempt.resumed = false;
    // Refused by the upstream, or by the pool itself, which knows the budget.
    const Bytes lacks = attempt.lacks.count != 0 ? attempt.lacks : attempt.block;
    const bool short_of_budget = account_.missing(lacks).count != 0;
    const bool short_of_memory = attempt.upstream_refused || short_of_budget;
    const Lack lack{.refusal = short_of_budget ? Refusal::kBudget : Refusal::kDevice,
                    .bytes = lacks,
                    .whole = attempt.block};
    if (room.is_raised() || (short_of_memory && room.make(lack, patient))) continue;
    if (patient) return nullptr;
    patient = attempt.resumed = true;
  }
}

void Arena::tell(const Attempt& attempt, const Room& room, const std::exception& why,
                 std::string& report) noexcept {
  try {
    report = why.what();
    if (dynamic_cast<const OutOfMemory*>(&why) != nullptr) {
      report += "\n    " + room.found();
      const std::string captures = fences_.captures_text();
      if (captures.empty()) return;
      report += "\n    " + captures + ": until its end nothing is released to the driver, " +
                format_bytes(upstream_.held()) + " so far" +
                (fences_.forbids_asking() ? ", and freed memory is not known to be free" : "");
      return;
    }
    // A handover could not be waited for, and the pool has not counted the failure yet.
    pools_.fail(attempt);
  } catch (const OutOfMemory& pool) {
    report = std::string(pool.what()) + "\n    " + report;
  } catch (const std::exception&) {
    report = "out of memory, also on the host";
  }
}

std::optional<CUresult> Arena::free(CUdeviceptr pointer, StreamId stream) noexcept {
  void* const address = reinterpret_cast<void*>(pointer);
  try {
    // Before the pool has the memory back: another thread may get the address afterwards.
    const auto charge = take_charge(address);
    const auto freed = pools_.try_deallocate(address, stream);
    if (!freed) return std::nullopt;
    if (charge) {
      admission_.note_freed(charge->ticket, charge->bytes, *freed == Freed::kAwaiting);
    } else if (batches_.load(std::memory_order_relaxed) != 0) {
      admission_.note_given_back();
    }
    return CUDA_SUCCESS;
  } catch (const std::exception& error) {
    // Only host memory can be short here; then nothing was freed.
    log(LogLevel::kError, std::string("a free failed: ") + error.what());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// Until it ends, nothing may be asked of the device or released to the driver.
void Arena::expect_capture(Call& call) noexcept {
  attempt(LogLevel::kDebug, "a capture gets no more room", [&] {
    if (fences_.capturing()) return;
    // A captured step needs about as much as the same step before it, maybe in other sizes.
    const Bytes cached = pools_.spare();
    const Bytes room = minus_or_zero(account_.budget(), account_.used());
    const bool device_is_short = free_on_device().value_or(room) < room;
    if (device_is_short) {
      const WaitLimit limit{.until = call.until(settings_.max_wait.value)};
      (void)fences_.wait(fences_.record(fences_.everything()), limit);
    }
    if (device_is_short || cached > room) {
      (void)pools_.spare();
      (void)pools_.trim();
    }
  });
}

std::optional<Bytes> Arena::free_on_device() const noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  const Inside inside;
  const ContextScope scope(driver_, context_);
  const bool known = scope.good() && driver_.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS;
  return known ? std::optional(Bytes{free}) : std::nullopt;
}

void Arena::note_launches(Call& call, StreamId stream) noexcept {
  attempt(LogLevel::kDebug, "a launch was not paced", [&] {
    fences_.fence(stream);
    if (settings_.policy.policy.value == Policy::kThrottled && batches_.load() == 0) {
      hold_back(call);
    }
  });
}

void Arena::hold_back(Call& call) {
  // Checked before asking the device, which costs most with many streams.
  if (InCallback::now()) return;
  const Pressure before = pools_.pressure();
  if (!holds_much(before.awaiting, before.budget)) return;
  const WaitLimit limit{.until = call.until(settings_.max_wait.value)};
  pools_.poll();
  const auto start = Fences::Clock::now();
  const TimelineSlice slice;
  std::optional<Pace> waited;
  for (;;) {
    const auto point = pools_.oldest_awaiting();
    if (!point) break;
    const auto behind = Fences::Clock::now() - fences_.recorded(*point);
    const Pace decided = pace(pools_.pressure(), behind, settings_.policy.policy.value,
                              settings_.policy.run_ahead.value);
    if (decided == Pace::kGo || fences_.is_parked(*point)) break;
    {
      const Lock lock(mutex_);
      if (give_ups_ >= kMostGiveUps || (given_up_ && *given_up_ == *point)) break;
    }
    if (!waited) waited = decided;
    const bool reached = fences_.wait(*point, limit);
    if (!reached) {
      give_up(*point);
      break;
    }
    pools_.poll();
  }
  if (!waited) return;
  note_pace(slice, *waited, account_.device());
  const Lock lock(mutex_);
  ++paced_.count;
  paced_.total += Fences::Clock::now() - start;
}

// The awaited work may depend on this thread: let it go on, and do not wait for this point again. A
// program that does this twice would otherwise be held back at each step.
void Arena::give_up(Point point) {
  bool for_good = false;
  {
    const Lock lock(mutex_);
    given_up_ = point;
    for_good = ++give_ups_ >= kMostGiveUps;
  }
  if (for_good) pools_.look_out(false);
}

Arena::Shared Arena::share(CUdeviceptr base, Bytes& size) noexcept {
  void* const address = reinterpret_cast<void*>(base);
  const auto whole = upstream_.given(address);
  if (!whole) return Shared::kNotOurs;
  try {
    const auto held = pools_.find(address);
    // A handle to a part would also expose its neighbours.
    if (!held || held->size != *whole) return Shared::kPart;
    if (held->home != fences_.sync()) return Shared::kInOrder;
    if (!pools_.disown(address)) return Shared::kPart;
    if (const auto charge = take_charge(address)) {
      admission_.note_freed(charge->ticket, charge->bytes, false);
    }
    upstream_.disown(address, held->size);
    size = DriverUpstream::charged(held->size);
    return Shared::kGiven;
  } catch (const std::exception&) {
    return Shared::kPart;
  }
}

void Arena::keep(CUdeviceptr pointer) noexcept {
  const Lock lock(mutex_);
  try {
    kept_.insert(pointer);
    keeps_any_.store(true);
  } catch (const std::exception&) {
    log(LogLevel::kError, "memory of a captured graph may be reused: host memory is full");
  }
}

bool Arena::is_kept(CUdeviceptr pointer) const noexcept {
  if (!keeps_any_.load()) return false;  // without a lock: every free asks
  const Lock lock(mutex_);
  return kept_.contains(pointer);
}

std::optional<TicketRef> Arena::ticket_here() const {
  const std::uint64_t thread = thread_number();
  const Lock lock(mutex_);
  for (const OpenBatch& open : open_) {
    if (open.thread == thread) return open.ticket;
  }
  // Most programs mark batches on one thread and allocate on others too: a backward pass has its
  // own thread. With several batches open the owner is unknown.
  return open_.size() == 1 ? std::optional(open_.front().ticket) : std::nullopt;
}

void Arena::charge(void* pointer, Bytes bytes, const Stalls& waits) noexcept {
  const auto ticket = ticket_here();
  if (!ticket) return;
  try {
    const Lock lock(mutex_);
    charged_.insert_or_assign(pointer, Charge{*ticket, bytes});
    charged_blocks_.store(charged_.size(), std::memory_order_relaxed);
  } catch (const std::exception&) {
    return;  // charged to no batch
  }
  admission_.note_allocated(*ticket, bytes, waits);
}

std::optional<Arena::Charge> Arena::take_charge(void* pointer) noexcept {
  if (charged_blocks_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  const Lock lock(mutex_);
  const auto found = charged_.find(pointer);
  if (found == charged_.end()) return std::nullopt;
  const Charge charge = found->second;
  charged_.erase(found);
  charged_blocks_.store(charged_.size(), std::memory_order_relaxed);
  return charge;
}

std::optional<TicketRef> Arena::begin_batch(Call& call, std::string_view kind) noexcept {
  if (InCallback::now() || fences_.capturing()) return std::nullopt;
  const NoCancel no_cancel;
  if (batches_.fetch_add(1) == 0) pools_.look_out(false);
  std::optional<TicketRef> begun;
  attempt(LogLevel::kInfo, "a batch goes on without admission", [&] {
    const TicketRef ticket = admission_.open(kind, {.until = call.until(settings_.max_wait.value)});
    ticket.ticket->touched.insert(kAllRoles.front());
    const OpenBatch batch{.thread = thread_number(),
                          .ticket = ticket,
                          .began = Fences::Clock::now(),
                          .marker = timeline_marker()};
    (void)TimelineScope::exchange({.batch = ticket.ticket->number});
    if (batch.marker != nullptr) batch.marker->push(ticket.ticket->number, 0);
    const Lock lock(mutex_);
    open_.push_back(batch);
    begun = ticket;
  });
  return begun;
}

void Arena::end_batch(Call& call) noexcept {
  const NoCancel no_cancel;
  OpenBatch batch;
  {
    const Lock lock(mutex_);
    const auto found = std::ranges::find(open_, thread_number(), &OpenBatch::thread);
    if (found == open_.end()) return;
    batch = *found;
    open_.erase(found);
  }
  (void)TimelineScope::exchange({});
  if (batch.marker != nullptr) batch.marker->pop();
  attempt(LogLevel::kDebug, "a batch is not measured",
          [&] { fences_.measure(*batch.ticket.ticket, batch.began); });
  admission_.close(batch.ticket, true);
  fences_.fence(fences_.everything());
  if (settings_.policy.policy.value != Policy::kBarrier) return;
  attempt(LogLevel::kDebug, "a barrier was skipped", [&] {
    (void)fences_.wait(fences_.record(fences_.everything()),
                       {.until = call.until(settings_.max_wait.value)});
  });
}

void Arena::forget() noexcept {
  pools_.forget();
  fences_.forget();
  upstream_.forget();
}

Statistics Arena::statistics() const {
  Statistics now = pools_.statistics();
  const Lock lock(mutex_);
  now.waits += for_others_.count;
  now.waited += for_others_.total;
  return now;
}

Waits Arena::waits_for_others() const {
  const Lock lock(mutex_);
  return for_others_;
}

Waits Arena::paced() const {
  const Lock lock(mutex_);
  return paced_;
}

}  // namespace weir::preload
