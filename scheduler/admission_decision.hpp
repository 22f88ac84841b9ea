#pragma once

// Whether a batch may start: values in, decision out. docs/architecture.md follows one batch.

#include <chrono>
#include <cstdint>

#include "allocator/bytes.hpp"
#include "scheduler/policy.hpp"

namespace weir {

enum class Decision : std::uint8_t {
  kAdmit,
  kWaitTurn,  ///< somebody is before it in the line
  kWaitHard,  ///< it might not fit in the budget beside what is held and promised
  kWaitSoft,  ///< enough device time is queued
  kRefuse,    ///< its wait was cancelled
};

struct AdmissionState {
  bool first_in_line = true;
  bool cancelled = false;
  Bytes held{};                 ///< of the pool: allocated + awaiting
  Bytes budget{};               ///< of the pool, from the same moment
  Bytes unspent{};              ///< promised to open batches and not yet allocated by them
  Bytes estimate{};             ///< what this batch is expected to hold at its peak
  std::uint64_t submitted = 0;  ///< batches that are closed and not settled
  std::chrono::nanoseconds queued_time{};  ///< device time that those are expected to take
};

/// With nothing submitted the first in line is admitted, whatever its size: nothing that could be
/// waited for would help. Then the hard limit decides, then the soft one.
[[nodiscard]] constexpr Decision decide(const AdmissionState& state,
                                        const RunAhead& run_ahead) noexcept {
  if (state.cancelled) return Decision::kRefuse;
  if (!state.first_in_line) return Decision::kWaitTurn;
  if (state.submitted == 0) return Decision::kAdmit;
  if (state.held > state.budget) return Decision::kWaitHard;
  const Bytes room = state.budget - state.held;
  if (state.unspent > room || state.estimate > room - state.unspent) return Decision::kWaitHard;
  if (soft_limit_reached(state.submitted, state.queued_time, run_ahead)) return Decision::kWaitSoft;
  return Decision::kAdmit;
}

}  // namespace weir
