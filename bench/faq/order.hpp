#pragma once

// Which order asynchronous work keeps: two threads submit batches at once, to two streams.

#include <cstdint>

#include "scheduler/admission/policy.hpp"

namespace weir::bench {

struct OrderFigures {
  std::uint64_t operations = 0;
  std::uint64_t late = 0;       ///< ran before one that was submitted earlier and writes its tensor
  std::uint64_t overtaken = 0;  ///< ran after one that was submitted later, of another tensor
  std::uint64_t lost = 0;       ///< additions that a shared sum does not have
  std::uint64_t hash = 0;       ///< of what each thread computed on its own
};

/// Runs `batches` of each thread on a cpu device of its own.
[[nodiscard]] OrderFigures run_order(Policy policy, std::uint64_t batches);

}  // namespace weir::bench
