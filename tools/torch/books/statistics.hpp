#pragma once

// Counts blocks and bytes as PyTorch's native allocator does.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tools/torch/books/short_lock.hpp"

namespace weir::torch_plug {

/// Sizes are rounded to this, as native rounds them (kMinBlockSize in
/// c10/cuda/CUDACachingAllocator.cpp).
inline constexpr std::size_t kRounding = 512;
/// A larger block is of the large pool (kSmallSize there).
inline constexpr std::size_t kSmallLimit = std::size_t{1} << 20U;

[[nodiscard]] constexpr std::size_t rounded(std::size_t bytes) noexcept {
  return bytes == 0 ? kRounding : (bytes + kRounding - 1) / kRounding * kRounding;
}

/// One series: what is there, its highest value, and all that came and went since the last reset.
struct Series {
  std::int64_t current = 0;    ///< of tensors and native's memory together
  std::int64_t peak = 0;       ///< of that sum
  std::int64_t allocated = 0;  ///< of tensors alone, as `freed`
  std::int64_t freed = 0;

  void move(std::int64_t amount) noexcept {
    current += amount;
    peak = std::max(peak, current);
  }
  void add(std::int64_t amount) noexcept {
    move(amount);
    allocated += amount;
  }
  void remove(std::int64_t amount) noexcept {
    move(-amount);
    freed += amount;
  }
};

/// A series for all blocks, for small and for large ones, in the order of PyTorch's StatType.
using SeriesByPool = std::array<Series, 3>;

struct Statistics {
  SeriesByPool blocks;
  SeriesByPool active_blocks;  ///< native's are active while another stream still uses them
  SeriesByPool bytes;          ///< rounded
  SeriesByPool active_bytes;   ///< the same, of active blocks
  SeriesByPool requested;      ///< as asked for
  std::int64_t retries = 0;
  std::int64_t failures = 0;
};
inline constexpr std::array kAllSeries{&Statistics::blocks, &Statistics::active_blocks,
                                       &Statistics::bytes, &Statistics::active_bytes,
                                       &Statistics::requested};

/// What native has of its own, such as private pools: for each of kAllSeries, by pool.
using NativeLevels = std::array<std::array<std::int64_t, 3>, kAllSeries.size()>;

/// The statistics of one device. Thread-safe. The lock is a leaf, held for a few additions: a peak
/// is that of a sum at one moment, so the sum cannot be kept in parts.
class alignas(64) Counters {
 public:
  /// Counts a tensor's block of `bytes`, rounded, of which `requested` were asked for. Returns the
  /// bytes that are now out, native's too.
  std::int64_t add(std::size_t bytes, std::size_t requested) noexcept {
    const std::lock_guard lock(mutex_);
    each(bytes, requested, [](Series& series, std::int64_t amount) { series.add(amount); });
    return statistics_.bytes[0].current;
  }
  /// Counts its end. Returns the bytes that are still out.
  std::int64_t remove(std::size_t bytes, std::size_t requested) noexcept {
    const std::lock_guard lock(mutex_);
    each(bytes, requested, [](Series& series, std::int64_t amount) { series.remove(amount); });
    return statistics_.bytes[0].current;
  }
  /// Call before native is asked for its levels, and pass the number to `set_native` with them:
  /// native is asked without the lock, and an answer may come after a later one.
  [[nodiscard]] std::uint64_t next_look() noexcept {
    const std::lock_guard lock(mutex_);
    return ++looks_;
  }
  /// Ignores an answer that was asked for before one that is already set.
  void set_native(std::uint64_t look, const NativeLevels& levels) noexcept {
    const std::lock_guard lock(mutex_);
    if (look < last_look_) return;
    last_look_ = look;
    for (std::size_t series = 0; series < levels.size(); ++series) {
      for (std::size_t pool = 0; pool < levels[series].size(); ++pool) {
        (statistics_.*kAllSeries[series])[pool].move(levels[series][pool] - native_[series][pool]);
      }
    }
    native_ = levels;
  }
  void count_retry() noexcept {
    const std::lock_guard lock(mutex_);
    ++statistics_.retries;
  }
  void count_failure() noexcept {
    const std::lock_guard lock(mutex_);
    ++statistics_.failures;
  }
  [[nodiscard]] Statistics read() const noexcept {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }
  void reset_peaks() noexcept {
    const std::lock_guard lock(mutex_);
    every([](Series& series) { series.peak = series.current; });
  }
  /// Also resets retries and failures, as native does.
  void reset_accumulated() noexcept {
    const std::lock_guard lock(mutex_);
    every([](Series& series) { series.allocated = series.freed = 0; });
    statistics_.retries = statistics_.failures = 0;
  }

 private:
  template <typename Act>
  void each(std::size_t bytes, std::size_t requested, Act act) noexcept {
    const std::size_t pool = bytes <= kSmallLimit ? 1 : 2;
    for (const std::size_t of : {std::size_t{0}, pool}) {
      act(statistics_.blocks[of], 1);
      act(statistics_.active_blocks[of], 1);
      act(statistics_.bytes[of], static_cast<std::int64_t>(bytes));
      act(statistics_.active_bytes[of], static_cast<std::int64_t>(bytes));
      act(statistics_.requested[of], static_cast<std::int64_t>(requested));
    }
  }
  template <typename Act>
  void every(Act act) noexcept {
    for (SeriesByPool Statistics::*all : kAllSeries) {
      for (Series& series : statistics_.*all) act(series);
    }
  }

  mutable ShortLock mutex_;
  Statistics statistics_;        ///< guarded by mutex_, as all below
  NativeLevels native_{};        ///< part of `statistics_`
  std::uint64_t looks_ = 0;      ///< at native
  std::uint64_t last_look_ = 0;  ///< that set `native_`
};

/// Returns native's figure of reserved memory (current and peak) where Weir's pools have `reserved`
/// bytes, and had at most `peak`. They have no parts for small and large blocks, so what is not
/// small and active counts as large. Never below the active memory: Weir's figures are of another
/// moment, and lack what native mapped itself (expandable segments).
[[nodiscard]] inline SeriesByPool reserved_of(std::int64_t reserved, std::int64_t peak,
                                              const Statistics& of) noexcept {
  const auto& [all, small, large] = of.active_bytes;
  SeriesByPool found;
  found[0].current = std::max(reserved, all.current);
  found[0].peak = std::max({peak, all.peak, found[0].current});
  found[1].current = small.current;
  found[1].peak = small.peak;
  found[2].current = found[0].current - small.current;
  found[2].peak = std::max({found[0].peak - small.peak, large.peak, found[2].current});
  return found;
}

}  // namespace weir::torch_plug
