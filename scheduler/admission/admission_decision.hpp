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
#include "scheduler/admission/policy.hpp"

namespace weir {

enum class Decision : std::uint8_t {
  kAdmit,
  kWaitTurn,   ///< another batch is before it in the line
  kWaitHard,   ///< it might not fit beside what is held and reserved
  kWaitSoft,   ///< enough device time is queued
  kWaitOpen,   ///< as kWaitHard with nothing submitted: an open batch must close or free
  kForce,      ///< admitted without room: the grace ended before enough was freed
  kWaitShare,  ///< a producer that has had less is submitting, and will be back in the line
  kRefuse,     ///< its wait was cancelled
};

struct AdmissionState {
  bool first_in_line = true;
  bool cancelled = false;
  bool grace_over = false;            ///< it has waited for open batches for the whole grace
  bool yields = false;                ///< FairLine::yields
  Bytes held{};                       ///< by the pool: allocated + awaiting
  Bytes budget{};                     ///< of the pool, at the same moment
  Bytes live{};                       ///< part of held that belongs to no unsettled batch
  Bytes unspent{};                    ///< reserved for open batches and not allocated yet
  Bytes estimate{};                   ///< expected peak of this batch
  std::uint64_t open = 0;             ///< batches begun and not closed
  std::uint64_t submitted = 0;        ///< batches closed and not settled
  std::chrono::nanoseconds queued{};  ///< expected device time of all behind the running batch
  std::chrono::nanoseconds copy{};    ///< the longest copies of a batch in the line
};

/// True if the estimate fits beside all that is held and reserved. If no batch is open, it need
/// only fit beside live memory: the new batch's allocations then wait for submitted work, which the
/// device finishes by itself. So it starts with the part of the room that it finds.
[[nodiscard]] constexpr bool has_room(const AdmissionState& state) noexcept {
  const Bytes room = minus_or_zero(state.budget, state.held);
  const bool fits =
      state.held <= state.budget && state.unspent <= room && state.estimate <= room - state.unspent;
  const bool early =
      state.open == 0 && state.live <= state.budget && state.estimate <= state.budget - state.live;
  return fits || early;
}

/// With nothing submitted and no batch open, admits the first in line whatever its size, since no
/// wait could help. Otherwise the hard limit decides, then the soft one.
[[nodiscard]] constexpr Decision decide(const AdmissionState& state,
                                        const RunAhead& run_ahead) noexcept {
  if (state.cancelled) return Decision::kRefuse;
  if (!state.first_in_line) return Decision::kWaitTurn;
  if (state.submitted == 0 && state.open == 0) return Decision::kAdmit;
  if (!has_room(state)) {
    if (state.submitted != 0) return Decision::kWaitHard;
    return state.grace_over ? Decision::kForce : Decision::kWaitOpen;
  }
  if (state.submitted != 0 && soft_limit_reached(state.submitted, state.queued, run_ahead)) {
    return Decision::kWaitSoft;
  }
  // Fairness must not idle the device, so it needs two submitted batches. One is enough where two
  // may reach the soft limit: with two submitted nobody would be admitted, and with one everybody.
  const std::uint64_t enough = std::clamp<std::uint64_t>(run_ahead.batches.value_or(3), 2, 3) - 1;
  if (state.yields && state.submitted >= enough) return Decision::kWaitShare;
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
