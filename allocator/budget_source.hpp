#pragma once

/// @file
/// The seam for a budget that changes while the program runs, such as one that several processes
/// share. A pool asks its source for more before it waits; a source asks the user for what it can
/// do without.

#include "allocator/base/bytes.hpp"

namespace weir {

/// What is used of a budget.
struct BudgetUse {
  Bytes held{};       ///< by live memory and all batches, with what is promised to open ones
  Bytes committed{};  ///< the part of it that no submitted work frees by itself
  bool idle = false;  ///< no batch is open, submitted or waiting
};

/// Decides on the limit for a use.
class BudgetLimit {
 public:
  /// Sets the limit of the pools, while the use does not change.
  virtual void set_for(const BudgetUse& use) noexcept = 0;

 protected:
  ~BudgetLimit() = default;
};

/// Whoever starts batches within the budget. Thread-safe.
class BudgetUser {
 public:
  /// Calls `limit.set_for` with what is used and promised now. No batch starts meanwhile.
  virtual void limit_to_use(BudgetLimit& limit) noexcept = 0;

 protected:
  ~BudgetUser() = default;
};

/// Where more budget comes from. Thread-safe. Waits for no other process. Call without a lock.
class BudgetSource {
 public:
  /// Tries to make room for `more` bytes beside what the pools have taken. Returns true if it made
  /// the budget larger.
  virtual bool make_room_for(Bytes more) noexcept = 0;
  /// Tries to raise the budget to `budget`. Returns true if it made the budget larger.
  virtual bool raise_to(Bytes budget) noexcept = 0;
  /// From now on asks `user` before it lowers the budget; null: it lowers nothing. Afterwards the
  /// former user is not called any more.
  virtual void serve(BudgetUser* user) noexcept = 0;

 protected:
  ~BudgetSource() = default;
};

}  // namespace weir
