#pragma once

// The pools of one context. With `auto`, cuMemAlloc has one pool and memory in stream order
// another, created on first use. With a named kind one pool serves all.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/pressure.hpp"
#include "allocator/pool.hpp"
#include "allocator/statistics.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/upstream.hpp"
#include "tools/preload/settings/settings.hpp"

namespace weir::preload {

/// Sends each call for a pointer to the pool that owns it. Figures are sums. Each pool's part is
/// from one moment, but not all parts from the same. Thread-safe.
class Pools final : public MemoryStatistics {
 public:
  Pools(DriverUpstream& upstream, Fences& fences, const Account& account, const Settings& settings);
  ~Pools() = default;
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  /// Like Pool's, in the pool that serves `stream`.
  [[nodiscard]] void* try_allocate(Bytes bytes, StreamId stream, std::string_view label,
                                   Attempt& attempt);
  [[noreturn]] void fail(const Attempt& attempt);
  [[nodiscard]] std::optional<Bytes> block_size(Bytes bytes, StreamId stream) const noexcept;
  [[nodiscard]] std::optional<Freed> try_deallocate(void* pointer, StreamId stream);
  void record_use(void* pointer, StreamId stream);
  [[nodiscard]] std::optional<BlockInUse> find(const void* pointer) const;
  [[nodiscard]] std::optional<BlockInUse> find_around(const void* address) const;
  [[nodiscard]] std::optional<BlockInUse> disown(void* pointer);

  void poll() override;
  bool raise_budget_to(Bytes budget) noexcept override {
    return source_ != nullptr && source_->raise_to(budget);
  }
  /// Returns the oldest over all pools.
  [[nodiscard]] std::optional<Point> oldest_awaiting() const;
  [[nodiscard]] std::optional<Point> oldest_outstanding() const;
  /// Releases up to `need` bytes of what the pools cache, but not of the pool `but`. Returns how
  /// much.
  Bytes release(Bytes need, const Pool* but = nullptr);
  /// Releases cached memory until `keep` stays reserved in all pools together. Returns how much.
  Bytes trim(Bytes keep = {}) { return release(minus_or_zero(sum().reserved.current, keep)); }
  /// Returns the most that `release` could release, given how far the device has come.
  [[nodiscard]] Bytes spare(const Pool* but = nullptr);
  /// Returns what they reserved and did not hand out, without asking the device.
  [[nodiscard]] Bytes kept(const Pool* but = nullptr) const;
  /// Returns the pool that serves `stream`.
  [[nodiscard]] Pool& serving(StreamId stream);

  [[nodiscard]] std::uint16_t device() const noexcept override { return first_.device(); }
  /// Returns the sums of all pools, and their level.
  [[nodiscard]] Pressure pressure() const override;
  /// Returns the time at each level of the sums.
  [[nodiscard]] PressureTimes at_level() const noexcept;
  /// Whether pools of any context that looks out are at PressureLevel::kHard, and so much of their
  /// memory awaits the device that a launch may have to wait for it (`holds_much`).
  [[nodiscard]] static bool any_wait_at_limit() noexcept {
    return wait_at_limit.load(std::memory_order_relaxed) != 0;
  }
  /// Whether these pools count for `any_wait_at_limit`; at first they do not.
  void look_out(bool looks_out) noexcept;
  /// Ends the level and `look_out`, after the context has ended.
  void forget() noexcept;
  /// Peaks are of the sums at the ends of calls, since the beginning.
  [[nodiscard]] Statistics statistics() const override;
  /// Peaks since the last `reset_recent_peaks`, at the ends of calls.
  struct RecentPeaks {
    Bytes allocated;
    Bytes reserved;
  };
  [[nodiscard]] RecentPeaks recent_peaks() const;
  /// Resets them to the current levels. With one pool for all, also resets those of `in_order`.
  void reset_recent_peaks();
  /// Returns the memory of all pools as Pool::blocks does. Each pool's part is from one moment.
  [[nodiscard]] std::vector<PoolBlock> blocks() const;
  [[nodiscard]] Bytes budget() const override { return first_.budget(); }
  [[nodiscard]] std::string holders(std::size_t most) const override;
  /// Sets the limits of all pools, also of one created later.
  void set_limits(Bytes budget, RunningOut running_out);

  // Returns the statistics of the pool in stream order alone: the program's default pool.
  [[nodiscard]] Statistics in_order() const;
  void reset_peaks_in_order();
  /// Implements cuMemPoolTrimTo: releases until `keep` stays reserved in stream order. Also
  /// releases what cuMemFree freed, since a driver caches none of it.
  void trim_to(Bytes keep);

  /// A pool and what it serves.
  struct Part {
    std::string_view serves;  ///< `cuMemAlloc`, `stream order` or `all`
    const Pool* pool;
  };
  /// Returns the pools; null for one that is not created yet.
  [[nodiscard]] std::array<Part, 2> parts() const noexcept;

 private:
  [[nodiscard]] Pool* second() const noexcept { return second_.load(std::memory_order_acquire); }
  [[nodiscard]] PoolKind kind_in_order();
  [[nodiscard]] Pool& make_second();
  /// Returns the pools in the order in which to search for a pointer freed on `stream`; null for
  /// none.
  [[nodiscard]] std::array<Pool*, 2> looked_through(StreamId stream) const noexcept;
  [[nodiscard]] std::array<Pool*, 2> all() const noexcept { return {&first_, second()}; }
  /// Returns the pool in stream order; null if not created yet.
  [[nodiscard]] Pool* of_stream_order() const noexcept { return split_ ? second() : &first_; }
  [[nodiscard]] std::optional<Point> oldest(std::optional<Point> (Pool::*of_pool)() const) const;
  [[nodiscard]] Statistics sum() const;
  /// Returns the sum of a gauge of kAllGauges. Takes no lock.
  [[nodiscard]] Bytes level_of(std::size_t gauge) const noexcept;
  [[nodiscard]] bool much_awaits() const noexcept;
  /// Follows the sums after a change by the calling thread: peaks and level.
  void note_change() const noexcept;
  void follow_level() const noexcept WEIR_REQUIRES(level_mutex_);

  DriverUpstream& upstream_;
  Fences& fences_;
  const Settings& settings_;
  const bool split_;  ///< two pools, or one for all
  const PoolOptions options_;
  BudgetSource* const source_;  ///< of more budget; may be null
  mutable Pool first_;
  std::once_flag second_once_;
  std::unique_ptr<Pool> second_owner_;
  std::atomic<Pool*> second_{nullptr};
  /// Peaks of the sums, in the order of kAllGauges.
  using Peaks = std::array<std::atomic<std::uint64_t>, kAllGauges.size()>;
  mutable Peaks peaks_{};
  mutable Peaks recent_{};  ///< since the last reset; of the sums of two pools; never above peaks_

  inline static std::atomic<std::uint64_t> wait_at_limit{0};  ///< Pools with `waits_at_limit_`
  mutable Mutex level_mutex_{LockRank::kLeaf};
  mutable PressureGauge level_ WEIR_GUARDED_BY(level_mutex_);
  bool looks_out_ WEIR_GUARDED_BY(level_mutex_) = false;
  bool has_ended_ WEIR_GUARDED_BY(level_mutex_) = false;
  // Written under the lock, and read without it.
  std::atomic<std::uint64_t> budget_;
  mutable std::atomic<std::uint64_t> steady_from_{0};   ///< the steady range of `level_`
  mutable std::atomic<std::uint64_t> steady_below_{0};  ///< its end
  mutable std::atomic<bool> watches_{false};            ///< it looks out, and is at the hard limit
  mutable std::atomic<bool> waits_at_limit_{false};     ///< and much awaits the device
};

}  // namespace weir::preload
