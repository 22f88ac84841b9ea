#pragma once

// What differs between pool kinds: a strategy for memory, and an entry in the table of kinds, both
// implemented in allocator/kinds. A new kind without its own settings changes only that folder and
// PoolKind (pool_options.hpp).

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

/// How a pool gets memory from the upstream and returns it. Owns the index. Called without the
/// lock; it claims budget under the lock and calls the upstream without it.
class PoolStrategy {
 public:
  /// The derived class makes the index and sets `state.index`.
  explicit PoolStrategy(PoolState& state) noexcept : state_(state) {}
  PoolStrategy(const PoolStrategy&) = delete;
  PoolStrategy& operator=(const PoolStrategy&) = delete;
  virtual ~PoolStrategy() = default;

  /// Serves `request` with new memory. Returns the block, marked allocated, or null.
  [[nodiscard]] virtual Block* grow(Attempt& request) = 0;
  /// Releases cached memory, then grows.
  [[nodiscard]] virtual Block* make_room(Attempt& request) = 0;
  /// Reports what `make_room` found.
  [[nodiscard]] virtual StageReport room_found(const Attempt& request) const = 0;
  /// Called after a free. Some kinds release memory here.
  virtual void after_free() {}
  /// See Pool::trim.
  virtual Bytes trim(Bytes keep) = 0;
  /// Releases everything when the pool ends and the device is done.
  virtual void give_back_all() = 0;

 protected:
  PoolState& state_;
};

struct KindOfPool {
  PoolKind kind;
  std::string_view name;
  /// A block can be part of what another request needs.
  bool splits;
  /// A hit may pass a waiting request (may_pass_by), since a block is a whole segment.
  bool hits_pass_by;
  /// Returns the block size for a request, or nullopt beyond 2^63.
  std::optional<Bytes> (*block_size)(const PoolOptions& options, Bytes bytes);
  /// Makes the strategy and index. Throws UsageError if the upstream cannot serve the kind.
  std::unique_ptr<PoolStrategy> (*make)(PoolState& state);
};

/// Every kind, in the order of PoolKind.
[[nodiscard]] std::span<const KindOfPool> kinds_of_pool() noexcept;
/// The names of the kinds, for error messages.
[[nodiscard]] std::string_view allowed_kinds_of_pool() noexcept;
[[nodiscard]] const KindOfPool& kind_of_pool(PoolKind kind) noexcept;

}  // namespace weir
