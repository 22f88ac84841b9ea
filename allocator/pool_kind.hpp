#pragma once

// What differs between the kinds of pool: a strategy for the pool's memory, and an entry in the
// table of kinds. Both are implemented in allocator/kinds. A new kind without settings of its own
// changes only that folder and PoolKind (pool_options.hpp).

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "allocator/pool_state.hpp"

namespace weir {

/// A stage's finding, for a failure report.
struct StageReport {
  std::string_view stage;
  std::string found;
};

/// How a pool gets memory from the upstream and returns it. Owns the pool's index. The pool calls
/// it without a lock. It claims budget under the lock and calls the upstream without it.
class PoolStrategy {
 public:
  /// The derived class makes the index and sets `state.index`.
  explicit PoolStrategy(PoolState& state) noexcept : state_(state) {}
  PoolStrategy(const PoolStrategy&) = delete;
  PoolStrategy& operator=(const PoolStrategy&) = delete;
  virtual ~PoolStrategy() = default;

  /// Serves `request` with new memory within the budget. Returns the block, marked allocated, or
  /// null.
  [[nodiscard]] virtual Block* grow(Attempt& request) = 0;
  /// Releases cached memory to make room, then does the same.
  [[nodiscard]] virtual Block* make_room(Attempt& request) = 0;
  /// Reports what `make_room` found.
  [[nodiscard]] virtual StageReport room_found(const Attempt& request) const = 0;
  /// Called after a block was freed. Some kinds release memory here.
  virtual void after_free() {}
  /// Releases cached memory that the device has passed until `keep` stays reserved. Returns the
  /// bytes released. See Pool::trim.
  virtual Bytes trim(Bytes keep) = 0;
  /// Releases everything at the end of the pool. The device is done with all of it.
  virtual void give_back_all() = 0;

 protected:
  PoolState& state_;
};

/// One kind of pool.
struct KindOfPool {
  PoolKind kind;
  std::string_view name;
  /// A block can be part of what another request needs.
  bool splits;
  /// A hit may pass a waiting request (may_pass_by), since each block is a whole segment.
  bool hits_pass_by;
  /// Returns the block size for a request, or nullopt beyond 2^63.
  std::optional<Bytes> (*block_size)(const PoolOptions& options, Bytes bytes);
  /// Makes the strategy and its index. Throws UsageError if the upstream cannot serve the kind.
  std::unique_ptr<PoolStrategy> (*make)(PoolState& state);
};

/// Returns every kind, in the order of PoolKind.
[[nodiscard]] std::span<const KindOfPool> kinds_of_pool() noexcept;
/// Returns the names of the kinds, for error messages.
[[nodiscard]] std::string_view allowed_kinds_of_pool() noexcept;
/// Returns the entry of `kind`.
[[nodiscard]] const KindOfPool& kind_of_pool(PoolKind kind) noexcept;

}  // namespace weir
