// The limits of a pool and their one owner.

#include <algorithm>

#include "allocator/base/error.hpp"
#include "allocator/budget.hpp"
#include "allocator/pool.hpp"

namespace weir {

void Pool::set_limits(Bytes budget, RunningOut running_out) {
  (void)resolve_budget({.bytes = budget}, state_.upstream.capacity(), "budget");
  const PoolChange change(state_);
  running_out_ = running_out;
  state_.set_budget(budget);
}

void Pool::raise_budget(Bytes budget) noexcept {
  const PoolChange change(state_);
  const Bytes most = std::min(budget, state_.upstream.capacity());
  if (most > state_.statistics.budget) state_.set_budget(most);
}

void Pool::lower_budget(Bytes budget) noexcept {
  const PoolChange change(state_);
  if (budget < state_.statistics.budget) state_.set_budget(budget);
}

bool Pool::raise_budget_to(Bytes budget) noexcept {
  BudgetSource* const source = source_.load(std::memory_order_relaxed);
  return source != nullptr && source->raise_to(budget);
}

Bytes Pool::taken() const {
  const Lock lock(state_.mutex);
  return state_.taken();
}

PoolLimits::PoolLimits(Pool& pool, Bytes budget, RunningOut running_out) : pool_(pool) {
  {
    const Lock lock(pool.state_.mutex);
    if (pool.limits_claimed_) {
      throw UsageError(
          "the pool already serves a scheduler, which sets its limits: destroy that scheduler "
          "first, or give each scheduler its own pool");
    }
    pool.limits_claimed_ = true;
  }
  try {
    pool.set_limits(budget, running_out);
  } catch (...) {
    end();
    throw;
  }
}

void PoolLimits::end() noexcept {
  const Lock lock(pool_.state_.mutex);
  pool_.limits_claimed_ = false;
}

Bytes Pool::budget() const {
  const Lock lock(state_.mutex);
  return state_.statistics.budget;
}

}  // namespace weir
