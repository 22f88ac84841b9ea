#pragma once

// What helps after a request for memory failed. Pure.

#include <cstdint>
#include <string>

#include "allocator/base/error.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir {

/// What a run that runs out of memory did until then.
struct RunSoFar {
  Policy policy = Policy::kThrottled;
  std::uint64_t batches = 0;         ///< finished, training or test
  bool shared = false;               ///< the budget is a part of one that several processes share
  std::string budgets = "--budget";  ///< the flags of all budgets that the run has
};

/// Returns the flag that helps in this case and why, as one line; empty if the error has no
/// figures: then its text says what was missing.
[[nodiscard]] std::string remedy_for(const MemoryShortage& shortage, const RunSoFar& run);

}  // namespace weir
