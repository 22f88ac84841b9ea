#include "tools/preload/context/arena.hpp"

#include <exception>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/context/room.hpp"

namespace weir::preload {

Arena::Arena(const Driver& driver, CUcontext context, Device& device, const Settings& settings)
    : driver_(driver),
      context_(context),
      device_(device),
      account_(device.account()),
      settings_(settings),
      fences_(driver, context),
      upstream_(driver, context, account_, fences_),
      pools_(upstream_, fences_, account_, settings),
      batches_(pools_, fences_, settings),
      pacer_(pools_, fences_, settings) {
  follow_budget();
}

void Arena::follow_budget() {
  pools_.set_limits(account_.budget(), before_growth(running_out(settings_.policy.policy.value)));
}

CUresult Arena::allocate(Call& call, CUdeviceptr& pointer, std::size_t bytes, StreamId stream,
                         std::string& report) noexcept {
  Attempt attempt{.stream = stream, .for_all = stream == fences_.sync()};
  Room room(device_, call.until(settings_.max_wait.value), &pools_.serving(stream));
  Stalls waits;
  CUresult code = CUDA_SUCCESS;
  try {
    void* const found = obtain(room, attempt, {bytes}, waits);
    if (found == nullptr) pools_.fail(attempt);
    waits += room.waits();
    device_.note_served({bytes});
    batches_.charge(found, attempt.block, waits);
    pointer = reinterpret_cast<CUdeviceptr>(found);
  } catch (const DriverError& error) {
    code = error.code();
  } catch (const std::exception& error) {
    tell(attempt, room, error, report);
    code = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (room.waits().count == 0) return code;
  const Lock lock(mutex_);
  for_others_.count += room.waits().count;
  for_others_.total += room.waits().total;
  return code;
}

// The pool first tries without waits, since other pools may have room to release. Then it may hand
// over and wait, and room is made by waits for others.
void* Arena::obtain(Room& room, Attempt& attempt, Bytes bytes, Stalls& waits) {
  const std::string_view label = attempt.for_all ? "cuMemAlloc" : "cuMemAllocAsync";
  bool patient = false;
  for (;;) {
    attempt.at_once = !patient;
    attempt.limit = room.limit();
    attempt.may_release = room.may_release();
    void* const found = pools_.try_allocate(bytes, attempt.stream, label, attempt);
    waits += {.count = attempt.waits, .total = attempt.waited};
    if (found != nullptr) return found;
    attempt.resumed = false;
    // Refused by the upstream, or by the pool itself, which knows the budget.
    const Bytes lacks = attempt.lacks.count != 0 ? attempt.lacks : attempt.block;
    const bool short_of_budget = account_.missing(lacks).count != 0;
    const bool short_of_memory = attempt.upstream_refused || short_of_budget;
    const Lack lack{.refusal = short_of_budget ? Refusal::kBudget : Refusal::kDevice,
                    .bytes = lacks,
                    .whole = attempt.block,
                    .busy = attempt.busy};
    const bool lacks_room = short_of_memory || attempt.busy;
    if (room.is_raised() || (lacks_room && room.make(lack, patient))) continue;
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
    const auto charge = batches_.take_charge(address);
    const auto freed = pools_.try_deallocate(address, stream);
    if (!freed) return std::nullopt;
    batches_.note_freed(charge, *freed == Freed::kAwaiting);
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
    if (!device_is_short && cached <= room) return;
    if (device_is_short) (void)upstream_.settle({.until = call.until(settings_.max_wait.value)});
    (void)trim(call);
  });
}

// First what needs no wait: often there is nothing else.
Bytes Arena::trim(Call& call, Bytes keep) noexcept {
  return attempt<Bytes>(LogLevel::kDebug, "nothing was trimmed", {}, [&]() -> Bytes {
    const auto until = call.until(settings_.max_wait.value);
    Bytes released;
    for (const bool settled : {false, true}) {
      const Bytes held = upstream_.held();
      const Bytes left = pools_.above(keep) + held;
      if (settled && (left.count == 0 || !upstream_.settle({.until = until}))) break;
      const ContextGate::Turn turn(device_.gate(), until);
      if (!turn.granted() || fences_.capturing()) break;
      pools_.poll();
      upstream_.release_held(settled);
      released += pools_.trim(keep, settled) + minus_or_zero(held, upstream_.held());
    }
    return released;
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
    if (batches_.count() == 0) pacer_.hold_back(call);
  });
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
    if (const auto charge = batches_.take_charge(address)) batches_.note_freed(charge, false);
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

void Arena::forget() noexcept {
  pools_.sums().forget();
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

}  // namespace weir::preload
