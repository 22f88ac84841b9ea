#pragma once

// The figures of one context's pools together: sums, their peaks and their pressure level.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "allocator/base/mutex.hpp"
#include "allocator/base/pressure.hpp"
#include "allocator/pool.hpp"
#include "allocator/statistics.hpp"

namespace weir::preload {

/// Knows the pools, and reads their figures. Each pool's part is from one moment, but not all parts
/// from the same. Thread-safe. Whoever changes a pool calls `note_change` afterwards.
class PoolSums {
 public:
  explicit PoolSums(Pool& first)
      : pools_{&first}, level_(first.budget()), budget_(first.budget().count) {}

  /// Adds a second pool, the last one.
  void add(Pool& second);
  /// Returns the pools; none ever goes. Takes no lock.
  [[nodiscard]] std::span<Pool* const> pools() const noexcept {
    return {pools_.data(), count_.load()};
  }
  /// Follows the sums after a change by the calling thread: peaks and level.
  void note_change() noexcept;
  /// Call after the pools' budget was set.
  void set_budget(Bytes budget) noexcept;

  /// Returns the sums. With two pools, the peaks are the current levels.
  [[nodiscard]] Statistics sum() const;
  /// Peaks are of the sums at the ends of calls, since the beginning.
  [[nodiscard]] Statistics statistics();
  /// Peaks since the last `reset_recent_peaks`, at the ends of calls.
  struct RecentPeaks {
    Bytes allocated;
    Bytes reserved;
  };
  [[nodiscard]] RecentPeaks recent_peaks();
  /// Resets them to the current levels. Also resets the peaks of a pool that is alone.
  void reset_recent_peaks();

  /// Returns the sums of what each pool says, and their level.
  [[nodiscard]] Pressure pressure();
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

 private:
  /// Returns the sum of a gauge of kAllGauges. Takes no lock.
  [[nodiscard]] Bytes level_of(std::size_t gauge) const noexcept;
  [[nodiscard]] bool much_awaits() const noexcept;
  void follow_level() noexcept WEIR_REQUIRES(mutex_);

  std::array<Pool*, 2> pools_;
  std::atomic<std::size_t> count_{1};  ///< of `pools_`
  /// Peaks of the sums, in the order of kAllGauges.
  using Peaks = std::array<std::atomic<std::uint64_t>, kAllGauges.size()>;
  Peaks peaks_{};
  Peaks recent_{};  ///< since the last reset; of the sums of two pools; never above peaks_

  inline static std::atomic<std::uint64_t> wait_at_limit{0};  ///< PoolSums with `waits_at_limit_`
  mutable Mutex mutex_{LockRank::kLeaf};
  PressureGauge level_ WEIR_GUARDED_BY(mutex_);
  bool looks_out_ WEIR_GUARDED_BY(mutex_) = false;
  bool has_ended_ WEIR_GUARDED_BY(mutex_) = false;
  // Written under the lock, and read without it.
  std::atomic<std::uint64_t> budget_;
  std::atomic<std::uint64_t> steady_from_{0};   ///< the steady range of `level_`
  std::atomic<std::uint64_t> steady_below_{0};  ///< its end
  std::atomic<bool> watches_{false};            ///< it looks out, and is at the hard limit
  std::atomic<bool> waits_at_limit_{false};     ///< and much awaits the device
};

}  // namespace weir::preload
