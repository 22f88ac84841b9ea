#pragma once

/// @file
/// A pool's budget, leased from a share. docs/share.md follows one lease.
///
/// The lease is never less than the pool's budget, nor than what the pool has reserved. So it is
/// raised before the pool's budget, and lowered after it.

#include <atomic>
#include <condition_variable>
#include <thread>

#include "allocator/base/mutex.hpp"
#include "allocator/budget_source.hpp"
#include "allocator/pool.hpp"
#include "allocator/share/share.hpp"

namespace weir {

/// Raises the lease when the pool or admission lacks memory. A thread of its own returns what is
/// not needed while others want it, and all of it after a second without a batch. It looks every 5
/// ms while the lease is above its floor, and otherwise ten times a second. Warns once if live
/// memory and the open batches need more than the floor.
class SharedBudget final : public BudgetSource {
 public:
  /// Sets the pool's budget to the share's lease. Both must outlive it.
  SharedBudget(Share& share, Pool& pool);
  ~SharedBudget();
  SharedBudget(const SharedBudget&) = delete;
  SharedBudget& operator=(const SharedBudget&) = delete;

  bool make_room_for(Bytes more) noexcept override;
  bool raise_to(Bytes budget) noexcept override;
  void serve(BudgetUser* user) noexcept override;

  /// Returns what is not needed, if others want it. The thread calls it. For tests.
  void give_back() noexcept;

 private:
  /// Sets the pool's budget to what is needed of the lease.
  class Limit;

  void watch();
  [[nodiscard]] bool raise_locked(Bytes budget, Share::Effort effort) noexcept
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] bool has_something_to_return() const WEIR_REQUIRES(mutex_);

  Share& share_;
  Pool& pool_;
  Mutex mutex_{LockRank::kSources};  ///< the lease and the pool's budget change together
  std::condition_variable_any changed_;
  BudgetUser* user_ WEIR_GUARDED_BY(mutex_) = nullptr;
  bool stop_ WEIR_GUARDED_BY(mutex_) = false;
  unsigned idle_looks_ WEIR_GUARDED_BY(mutex_) = 0;    ///< in a row
  unsigned looks_since_ WEIR_GUARDED_BY(mutex_) = 0;   ///< since a raise was refused
  bool has_wish_ WEIR_GUARDED_BY(mutex_) = false;      ///< a raise was refused
  bool is_floor_low_ WEIR_GUARDED_BY(mutex_) = false;  ///< more was committed, and that was said
  std::thread thread_;
};

}  // namespace weir
