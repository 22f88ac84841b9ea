#pragma once

// Two admission rules as pure functions: may a batch start, and which of the blocked allocations
// must fail. docs/architecture.md follows one batch.
//
// Together they guarantee: if every batch fits in the budget and stays within its estimate, none
// runs out of memory and no wait lasts forever. The tests check every small state.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>

#include "allocator/base/bytes.hpp"
#include "allocator/base/pressure.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir {

enum class Decision : std::uint8_t {
  kAdmit,
  kWaitTurn,   ///< another batch is before it in the line
  kWaitHard,   ///< it might not fit beside what is held and reserved
  kWaitSoft,   ///< enough device time is queued
  kWaitOpen,   ///< as kWaitHard with nothing submitted: an open batch must close or free
  kWaitShare,  ///< for `patience`: others that have had less may come back
  kForce,      ///< admitted without room: the grace ended before enough was freed
  kRefuse,     ///< its wait was cancelled
};

struct AdmissionState {
  bool first_in_line = true;
  bool cancelled = false;
  bool grace_over = false;            ///< it has waited for open batches for the whole grace
  bool is_due = true;                 ///< FairLine::is_due
  Pressure pressure{};                ///< of the pool
  Bytes live{};                       ///< part of held that belongs to no unsettled batch
  Bytes unspent{};                    ///< reserved for open batches and not allocated yet
  Bytes estimate{};                   ///< expected peak of this batch
  std::uint64_t open = 0;             ///< batches begun and not closed
  std::uint64_t lapsed = 0;           ///< of these, perhaps never closed: nothing is kept for them
  std::uint64_t submitted = 0;        ///< batches closed and not settled
  std::chrono::nanoseconds queued{};  ///< behind the running work on the fullest of its streams
  std::chrono::nanoseconds takes{};   ///< expected of the batch on its busiest stream
  std::chrono::nanoseconds copy{};    ///< the longest copies of a batch in the line
};

/// True if the estimate fits in `limit` beside all that is held and reserved.
[[nodiscard]] constexpr bool fits(const AdmissionState& state, Bytes limit) noexcept {
  const Bytes room = minus_or_zero(limit, state.pressure.held);
  return state.pressure.held <= limit && state.unspent <= room &&
         state.estimate <= room - state.unspent;
}

/// True if the estimate fits in the budget. If no batch is open, it need only fit beside live
/// memory: the new batch's allocations then wait for submitted work, which the device finishes by
/// itself. So it starts with the part of the room that it finds.
[[nodiscard]] constexpr bool has_room(const AdmissionState& state) noexcept {
  const Bytes budget = state.pressure.budget;
  const bool early =
      state.open == 0 && state.live <= budget && state.estimate <= budget - state.live;
  return fits(state, budget) || early;
}

/// True if the batch would leave less than half of the room beside live memory. Never of a batch
/// that needs an eighth of it: then few fit, and the budget decides.
[[nodiscard]] constexpr bool is_room_half_full(const AdmissionState& state) noexcept {
  const Bytes room = minus_or_zero(state.pressure.budget, state.live);
  return state.estimate.count <= room.count / 8 && !fits(state, state.live + Bytes{room.count / 2});
}

/// True if waiting costs no speed as far as is known.
[[nodiscard]] constexpr bool is_enough(const AdmissionState& state,
                                       const RunAheadTarget& target) noexcept {
  const std::uint64_t in_flight = state.open - state.lapsed + state.submitted;
  return soft_limit_reached(in_flight, state.queued, target.limit) || in_flight >= target.most ||
         (target.half_of_room && in_flight >= 2 && is_room_half_full(state));
}

/// Returns how long a batch that is not due lets others come back. Until half of the target is left
/// of what is queued behind the running work: the device does not run dry meanwhile. With less
/// queued, a 32nd of its own time, and not more than a quarter of the queue.
[[nodiscard]] constexpr std::chrono::nanoseconds patience(const AdmissionState& state,
                                                          const RunAheadTarget& target) noexcept {
  if (!target.limit.batches) return {};
  const auto half = target.limit.time.value_or(std::chrono::nanoseconds{}) / 2;
  const auto least = std::min(state.queued / 4, state.takes / 32);
  return half.count() != 0 ? std::max(state.queued - half, least) : least;
}

/// With nothing submitted and no batch open, admits the first in line whatever its size, since no
/// wait could help. Otherwise the hard limit decides, then the soft one.
[[nodiscard]] constexpr Decision decide(const AdmissionState& state,
                                        const RunAheadTarget& target) noexcept {
  if (state.cancelled) return Decision::kRefuse;
  if (!state.first_in_line) return Decision::kWaitTurn;
  if (state.submitted == 0 && state.open == 0) return Decision::kAdmit;
  if (!has_room(state)) {
    if (state.submitted != 0) return Decision::kWaitHard;
    return state.grace_over ? Decision::kForce : Decision::kWaitOpen;
  }
  if (state.submitted != 0 && is_enough(state, target)) return Decision::kWaitSoft;
  if (!state.is_due && patience(state, target).count() != 0) return Decision::kWaitShare;
  return Decision::kAdmit;
}

/// An allocation that no submitted work can serve.
struct BlockedAllocation {
  static constexpr std::uint64_t kOutside = UINT64_MAX;

  std::uint64_t batch = kOutside;  ///< grows with each opened batch; kOutside: no batch
  bool has_news = false;           ///< something happened: it looks again, or fails
};

/// Returns which blocked allocation fails, or null; `blocked` is oldest first.
///
/// A running open batch may free what the others need. Once all `open` batches are blocked, the
/// youngest fails: the older ones were promised their memory first. Work outside any batch counts
/// as the youngest. An allocation with news looks first, and asks again here.
[[nodiscard]] constexpr BlockedAllocation* who_fails(
    std::uint64_t open, std::span<BlockedAllocation* const> blocked) noexcept {
  BlockedAllocation* youngest = nullptr;
  std::uint64_t stuck = 0;  // batches; threads of one batch may block in several allocations
  for (auto own = blocked.begin(); own != blocked.end(); ++own) {
    const std::uint64_t batch = (*own)->batch;
    if ((*own)->has_news) return nullptr;
    if (youngest == nullptr || batch >= youngest->batch) youngest = *own;
    const bool counted = std::any_of(blocked.begin(), own, [batch](const BlockedAllocation* other) {
      return other->batch == batch;
    });
    if (batch != BlockedAllocation::kOutside && !counted) ++stuck;
  }
  return stuck == open ? youngest : nullptr;
}

}  // namespace weir
