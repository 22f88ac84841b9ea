#pragma once

// What differs between the kinds of pool: a strategy for the pool's memory, and an entry in the
// table of kinds. Both are implemented in allocator/kinds. A new kind without settings of its own
// touches that folder and PoolKind (pool_options.hpp).

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "allocator/pool_state.hpp"

namespace weir {

/// What a stage found, for the report of a failure.
struct StageReport {
  std::string_view stage;
  std::string found;
};

/// How a pool gets memory from the upstream and gives it back. Owns the pool's index. The pool
/// calls it under no lock. It claims the budget under the lock and asks the upstream without it.
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
  /// The same with the room that cached memory makes when it goes back.
  [[nodiscard]] virtual Block* make_room(Attempt& request) = 0;
  /// Reports what `make_room` found.
  [[nodiscard]] virtual StageReport room_found(const Attempt& request) const = 0;
  /// A block was freed: gives memory back at once, where the kind does.
  virtual void after_free() {}
  /// Gives back cached memory that the device has passed until `keep` stays reserved. Returns the
  /// bytes given back. See Pool::trim.
  virtual Bytes trim(Bytes keep) = 0;
  /// Gives everything back, at the end of the pool. The device is done with all of it.
  virtual void give_back_all() = 0;

 protected:
  PoolState& state_;
};

/// One kind of pool.
struct KindOfPool {
  PoolKind kind;
  std::string_view name;
  /// A block can be a piece of what another request needs.
  bool splits;
  /// A hit may pass by a request that waits (may_pass_by): each block is all of a segment.
  bool hits_pass_by;
  /// The size of the block that serves a request; nothing for one beyond 2^63.
  std::optional<Bytes> (*block_size)(const PoolOptions& options, Bytes bytes);
  /// Makes the strategy and its index; UsageError where the upstream cannot serve the kind.
  std::unique_ptr<PoolStrategy> (*make)(PoolState& state);
};

/// Every kind, in the order of PoolKind.
[[nodiscard]] std::span<const KindOfPool> kinds_of_pool() noexcept;
/// Their names, as a refusal lists them.
[[nodiscard]] std::string_view allowed_kinds_of_pool() noexcept;
/// The entry of `kind`.
[[nodiscard]] const KindOfPool& kind_of_pool(PoolKind kind) noexcept;

}  // namespace weir
