#pragma once

#include "allocator/pool_options.hpp"

namespace weir::testing {

/// best_fit with the smallest segments: a block of 2 MiB or more has its own.
[[nodiscard]] inline PoolOptions options_of(Bytes budget, PoolKind kind = PoolKind::kRound) {
  PoolOptions options;
  options.kind = kind;
  options.budget = BudgetRequest{.bytes = budget};
  options.segment = mib(2);
  return options;
}

}  // namespace weir::testing
