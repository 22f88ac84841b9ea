#pragma once

// What differs between pool kinds: a strategy for memory, and an entry in the table of kinds, both
// implemented in allocator/kinds. A new kind changes only that folder and PoolKind; a new setting
// also is a member of PoolOptions (pool_options.hpp).

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
  /// Returns what `trim` could release, once that need not wait for the device.
  [[nodiscard]] virtual Bytes releasable() const = 0;
  /// See Pool::trim.
  virtual Bytes trim(Bytes keep, bool may_release) = 0;
  /// Releases everything when the pool ends and the device is done.
  virtual void release_all() = 0;

 protected:
  PoolState& state_;
};

/// A setting that only some kinds have, for programs that parse, show or try it.
struct PoolSetting {
  std::string_view name;      ///< for people
  std::string_view variable;  ///< the environment variable
  bool is_size;               ///< in bytes, so that it may be shown with a unit
  /// Throws UsageError with `source` if the value is not allowed.
  void (*set)(PoolOptions& options, std::string_view source, std::string_view text);
  /// Returns the value, as `set` reads it; a size without a unit.
  std::string (*text)(const PoolOptions& options);
  std::string (*source)(const PoolOptions& options);
};

/// Returns the name of the flag without its dashes: `pool-page-size` for WEIR_POOL_PAGE_SIZE.
[[nodiscard]] std::string flag_of(const PoolSetting& setting);

struct KindOfPool {
  PoolKind kind;
  std::string_view name;
  /// Frees keep memory for later requests.
  bool caches;
  /// The upstream must map memory page by page.
  bool needs_pages;
  /// A block can be part of what another request needs.
  bool splits;
  /// A hit may pass a waiting request (may_pass_by), since a block is a whole segment.
  bool hits_pass_by;
  /// Returns the block size for a request, or nullopt beyond 2^63.
  std::optional<Bytes> (*block_size)(const PoolOptions& options, Bytes bytes);
  /// Makes the strategy and index. Throws UsageError if the upstream cannot serve the kind.
  std::unique_ptr<PoolStrategy> (*make)(PoolState& state);

  /// All settings of its own.
  std::span<const PoolSetting* const> settings{};
  /// The one that `NAME:VALUE` sets in replays; null if none.
  const PoolSetting* main = nullptr;
  /// Show the value of `main` in names also if it is the default.
  bool always_named = false;
  /// Values of `main` to replay beside the default, where every pool is asked for.
  std::span<const std::string_view> beside{};
  /// Values of `main` to try for a recommendation.
  std::span<const std::string_view> to_try{};
};

/// Every kind, in the order of PoolKind.
[[nodiscard]] std::span<const KindOfPool> kinds_of_pool() noexcept;
/// The names of the kinds, for error messages.
[[nodiscard]] std::string_view allowed_kinds_of_pool() noexcept;
[[nodiscard]] const KindOfPool& kind_of_pool(PoolKind kind) noexcept;

}  // namespace weir
