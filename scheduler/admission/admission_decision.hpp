#pragma once

// Two rules of admission as pure functions: whether a batch may start, and which of the allocations
// that nothing submitted can serve has to fail. docs/architecture.md follows one batch.
//
// Together they keep this promise: where every batch fits in the budget and none takes more than
// its estimate, none runs out of memory, and no wait is for ever. The tests look at every small
// state.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>

#include "allocator/base/bytes.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir {

enum class Decision : std::uint8_t {
  kAdmit,
  kWaitTurn,   ///< somebody is before it in the line
  kWaitHard,   ///< it might not fit in the budget beside what is held and promised
  kWaitSoft,   ///< enough device time is queued
  kWaitOpen,   ///< as kWaitHard, with nothing submitted: an open batch must close or free
  kForce,      ///< admitted without room: no open batch closed or freed enough within the grace
  kWaitShare,  ///< a producer that has had less is submitting a batch and will be back in the line
  kRefuse,     ///< its wait was cancelled
};

struct AdmissionState {
  bool first_in_line = true;
  bool cancelled = false;
  bool grace_over = false;      ///< it has waited for the open batches as long as it may
  bool yields = false;          ///< FairLine::yields
  Bytes held{};                 ///< of the pool: allocated + awaiting
  Bytes budget{};               ///< of the pool, from the same moment
  Bytes live{};                 ///< part of held: no unsettled batch's
  Bytes unspent{};              ///< promised to open batches and not yet allocated by them
  Bytes estimate{};             ///< what this batch is expected to hold at its peak
  std::uint64_t open = 0;       ///< batches that are begun and not closed
  std::uint64_t submitted = 0;  ///< batches that are closed and not settled
  std::chrono::nanoseconds queued_time{};  ///< device time that those are expected to take
};

/// Whether the estimate fits beside all that is held and promised; or beside what is live alone,
/// where no batch is open and one is submitted: what the new batch then waits for in its
/// allocations is submitted work, which the device finishes by itself.
[[nodiscard]] constexpr bool has_room(const AdmissionState& state) noexcept {
  const Bytes room = minus_or_zero(state.budget, state.held);
  const bool fits =
      state.held <= state.budget && state.unspent <= room && state.estimate <= room - state.unspent;
  const bool early = state.open == 0 && state.submitted < 2 && state.live <= state.budget &&
                     state.estimate <= state.budget - state.live;
  return fits || early;
}

/// With nothing submitted and no batch open the first in line is admitted, whatever its size:
/// nothing that could be waited for would help. Then the hard limit decides, then the soft one.
[[nodiscard]] constexpr Decision decide(const AdmissionState& state,
                                        const RunAhead& run_ahead) noexcept {
  if (state.cancelled) return Decision::kRefuse;
  if (!state.first_in_line) return Decision::kWaitTurn;
  if (state.submitted == 0 && state.open == 0) return Decision::kAdmit;
  if (!has_room(state)) {
    if (state.submitted != 0) return Decision::kWaitHard;
    return state.grace_over ? Decision::kForce : Decision::kWaitOpen;
  }
  if (state.submitted != 0 && soft_limit_reached(state.submitted, state.queued_time, run_ahead)) {
    return Decision::kWaitSoft;
  }
  // The device has work meanwhile, so that it does not stand still for the sake of fairness: two
  // batches, or where no more than two may be queued, one.
  const std::uint64_t enough = std::clamp<std::uint64_t>(run_ahead.batches.value_or(3), 2, 3) - 1;
  if (state.yields && state.submitted >= enough) return Decision::kWaitShare;
  return Decision::kAdmit;
}

/// An allocation that nothing submitted can serve.
struct BlockedAllocation {
  static constexpr std::uint64_t kOutside = UINT64_MAX;

  std::uint64_t batch = kOutside;  ///< grows with each batch that is opened; kOutside: of none
  bool has_news = false;           ///< it looks again, or fails: something happened meanwhile
};

/// Which of the blocked allocations, in the order of their coming, fails; null is none.
///
/// While one of the `open` batches still runs, it may free what the others need. When all of them
/// stand in allocations, the youngest fails: the older ones were promised their memory before it.
/// Work outside any batch counts as the youngest. Who has news looks first, and asks again here.
[[nodiscard]] constexpr BlockedAllocation* who_fails(
    std::uint64_t open, std::span<BlockedAllocation* const> blocked) noexcept {
  BlockedAllocation* youngest = nullptr;
  std::uint64_t stuck = 0;  // batches; threads of one batch may stand in several allocations
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
