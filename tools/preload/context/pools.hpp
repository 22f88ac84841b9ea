#pragma once

// The pools of one context. With `auto`, cuMemAlloc has one pool and memory in stream order
// another, created on first use. With a named kind one pool serves all.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/pool.hpp"
#include "allocator/statistics.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/pool_sums.hpp"
#include "tools/preload/context/upstream.hpp"
#include "tools/preload/settings/settings.hpp"

namespace weir::preload {

/// Sends each call for a pointer to the pool that owns it. Figures are sums (PoolSums).
/// Thread-safe.
class Pools final : public MemoryStatistics {
 public:
  Pools(DriverUpstream& upstream, Fences& fences, const Account& account, const Settings& settings);

  /// Like Pool's, in the pool that serves `stream`.
  [[nodiscard]] void* try_allocate(Bytes bytes, StreamId stream, std::string_view label,
                                   Attempt& attempt);
  [[noreturn]] void fail(const Attempt& attempt);
  [[nodiscard]] std::optional<Freed> try_deallocate(void* pointer, StreamId stream);
  void record_use(void* pointer, StreamId stream);
  [[nodiscard]] std::optional<BlockInUse> find(const void* pointer) const;
  [[nodiscard]] std::optional<BlockInUse> find_around(const void* address) const;
  [[nodiscard]] std::optional<BlockInUse> disown(void* pointer);

  void poll() override;
  bool raise_budget_to(Bytes budget) noexcept override {
    return source_ != nullptr && source_->raise_to(budget);
  }
  /// Returns the oldest point that `of_pool` returns for any pool.
  [[nodiscard]] std::optional<Point> oldest(std::optional<Point> (Pool::*of_pool)() const) const;
  /// Releases up to `need` bytes of what the pools cache, but not of the pool `but`. Returns how
  /// much.
  Bytes release(Bytes need, bool may_release, const Pool* but = nullptr);
  /// Releases cached memory until `keep` stays reserved in stream order, and all that cuMemFree
  /// freed, since a driver caches none of it: cuMemPoolTrimTo. Returns how much.
  Bytes trim(Bytes keep = {}, bool may_release = false);
  /// Returns how much `trim` could release.
  [[nodiscard]] Bytes above(Bytes keep) const;
  /// Returns the most that `release` could release, given how far the device has come.
  [[nodiscard]] Bytes spare(const Pool* but = nullptr);
  /// Returns what they reserved and did not hand out, without asking the device.
  [[nodiscard]] Bytes kept(const Pool* but = nullptr) const;
  /// Returns the pool that serves `stream`.
  [[nodiscard]] Pool& serving(StreamId stream);

  [[nodiscard]] std::uint16_t device() const noexcept override { return first_.device(); }
  [[nodiscard]] Pressure pressure() const override { return sums_.pressure(); }
  [[nodiscard]] Statistics statistics() const override { return sums_.statistics(); }
  /// The figures of all pools together.
  [[nodiscard]] PoolSums& sums() const noexcept { return sums_; }
  /// Returns the memory of all pools as Pool::blocks does. Each pool's part is from one moment.
  [[nodiscard]] std::vector<PoolBlock> blocks() const;
  [[nodiscard]] Bytes budget() const override { return first_.budget(); }
  [[nodiscard]] std::string holders(std::size_t most) const override;
  /// Sets the limits of all pools, also of one created later.
  void set_limits(Bytes budget, RunningOut running_out);

  // Returns the statistics of the pool in stream order alone: the program's default pool.
  [[nodiscard]] Statistics in_order() const;
  void reset_peaks_in_order();

  /// A pool and what it serves.
  struct Part {
    std::string_view serves;  ///< `cuMemAlloc`, `stream order` or `all`
    const Pool* pool;
  };
  /// Returns the pools; null for one that is not created yet.
  [[nodiscard]] std::array<Part, 2> parts() const noexcept;

 private:
  [[nodiscard]] Pool& make_second();
  [[nodiscard]] std::span<Pool* const> all() const noexcept { return sums_.pools(); }
  /// Null if not created yet.
  [[nodiscard]] Pool* second() const noexcept { return all().size() == 1 ? nullptr : all().back(); }
  /// Returns the pool in stream order; null if not created yet.
  [[nodiscard]] Pool* of_stream_order() const noexcept { return split_ ? second() : all().front(); }

  DriverUpstream& upstream_;
  Fences& fences_;
  const Settings& settings_;
  const bool split_;  ///< two pools, or one for all
  const PoolOptions options_;
  BudgetSource* const source_;  ///< of more budget; may be null
  Pool first_;
  mutable PoolSums sums_;
  std::once_flag second_once_;
  std::unique_ptr<Pool> second_;  ///< others find it by `second()`
};

}  // namespace weir::preload
