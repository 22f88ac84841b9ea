#include "tools/preload/context/room.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "tools/preload/context/arena.hpp"

namespace weir::preload {
namespace {

/// Rounds of a request that has waited as long as it may: what others free meanwhile may serve it,
/// but they could free for ever.
constexpr unsigned kMostLate = 4;
/// Rounds in a row that only try again, because other requests gave something back.
constexpr unsigned kMostChanges = 8;
/// Between later ones, which may find that those requests took it again.
constexpr std::chrono::microseconds kPause{100};

}  // namespace

WaitLimit Room::limit() const {
  return {.until = hopeless_ ? Clock::time_point::min() : until_,
          .watched = &device_.account().raises(),
          .seen = raises_};
}

// Ends: each round released, found or awaited something, which is bounded until `until_`, and few
// rounds follow.
bool Room::make(const Lack& lack, bool may_wait) noexcept {
  return attempt(LogLevel::kDebug, "no room was made", false, [&]() -> bool {
    if (Clock::now() >= until_ && ++late_ > kMostLate) return false;
    const bool settled = std::exchange(settled_, false);  // other threads have enqueued more since
    const bool changed = has_changed(lack.refusal, false);
    changes_ = changed ? changes_ + 1 : 0;
    if (changed && changes_ <= kMostChanges) return true;
    if (InCallback::now()) return false;  // which must not call CUDA
    hopeless_ = lack.refusal == Refusal::kBudget && device_.is_hopeless(lack.whole, may_drain());
    if (!hopeless_ && (trim(lack, settled) || settle(lack, may_wait))) return true;
    BudgetSource* const source = device_.account().source();
    const bool wants_more = lack.refusal == Refusal::kBudget && source != nullptr;
    if (wants_more && source->make_room_for(lack.bytes)) return true;
    if (hopeless_ || !may_wait) return false;
    if (!changed) return has_changed(lack.refusal, true) || await_release();
    std::this_thread::sleep_for(kPause);
    return true;
  });
}

bool Room::is_raised() noexcept {
  const std::uint64_t raises = device_.account().raises().load();
  return std::exchange(raises_, raises) != raises;
}

bool Room::has_changed(Refusal refusal, bool may_wait) noexcept {
  Account& account = device_.account();
  const auto until = may_wait ? until_ : Clock::time_point::min();
  const bool returned = account.await_returned(refusal, before_, until);
  const bool raised = is_raised();
  const bool released = device_.own().refresh().count != 0;
  before_ = account.returned();
  return returned || raised || released;
}

bool Room::trim(const Lack& lack, bool settled) {
  busy_ = false;
  // If the budget has room, the device is full, perhaps of other processes, and nobody says how
  // much is missing.
  const bool short_of_budget = lack.refusal == Refusal::kBudget;
  const Bytes all = device_.account().total();  // of what is not known before
  const Bytes asked = lack.bytes.count != 0 ? lack.bytes : all;
  const Bytes lacks = short_of_budget ? device_.account().missing(lack.bytes) : asked;
  if (lacks.count == 0) return true;  // another thread has made room
  // They keep what would not make enough room. Asked only if it might: asking has its price.
  OwnMemory& own = device_.own();
  const Bytes most = device_.kept(asked_) + own.unused();
  if (most.count == 0 || (short_of_budget && most < lacks)) return false;
  const ContextGate::Turn turn(device_.gate(), until_);
  if (!turn.granted()) return false;
  const Bytes spare = device_.spare(asked_);
  if (short_of_budget && spare + own.unused() < lacks) return false;
  const Bytes programs = own.trim(lacks);
  const Bytes ours = device_.trim(minus_or_zero(lacks, programs), settled, asked_);
  busy_ = !settled && spare.count != 0 && programs.count + ours.count == 0;
  of_program_ += programs;
  of_pools_ += ours;
  return programs.count + ours.count != 0;
}

bool Room::settle(const Lack& lack, bool may_wait) {
  if (!busy_ && !lack.busy) return false;
  const auto start = Clock::now();
  WaitLimit until = limit();
  if (!may_wait) until.until = start;
  settled_ = device_.settle(until);
  if (may_wait) waits_ += {.count = 1, .total = Clock::now() - start};
  return settled_;
}

bool Room::await_release() {
  if (!running_out(device_.settings().policy.policy.value).wait) return false;
  const auto start = Clock::now();
  if (start >= until_) return false;
  const WaitLimit limit{.until = until_, .watched = &device_.account().raises(), .seen = raises_};
  bool reached = false;
  if (const auto next = device_.oldest_release()) {
    reached = next->owner->fences().wait(next->point, limit);
    if (reached) next->owner->pool().poll();
  } else if (may_drain()) {
    // What the program frees in its own pools has no points of ours.
    drained_ = device_.own().frees();
    for (Arena* const arena : device_.arenas()) {
      Fences& fences = arena->fences();
      if (fences.capturing()) continue;
      reached = fences.wait(fences.record(fences.everything()), limit) || reached;
    }
  } else {
    return false;
  }
  waits_ += {.count = 1, .total = Clock::now() - start};
  return reached;
}

std::string Room::found() const {
  return "room          " + format_bytes(of_program_) +
         " of the program's own pools and graphs and " + format_bytes(of_pools_) +
         " of the pools' cache were released";
}

}  // namespace weir::preload
