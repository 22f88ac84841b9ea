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
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;
  std::int64_t freed = 0;

  void add(std::int64_t amount) noexcept {
    current += amount;
    peak = std::max(peak, current);
    allocated += amount;
  }
  void remove(std::int64_t amount) noexcept {
    current -= amount;
    freed += amount;
  }
};

/// A series for all blocks, for small and for large ones, in the order of PyTorch's StatType.
using SeriesByPool = std::array<Series, 3>;

struct Statistics {
  SeriesByPool blocks;
  SeriesByPool bytes;      ///< rounded
  SeriesByPool requested;  ///< as asked for
  std::int64_t retries = 0;
  std::int64_t failures = 0;
};

/// The statistics of one device. Thread-safe. The lock is a leaf, held for a few additions: a peak
/// is that of a sum at one moment, so the sum cannot be kept in parts.
class alignas(64) Counters {
 public:
  /// Counts a block of `bytes`, rounded, of which `requested` were asked for. Returns the bytes
  /// that are now out.
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
      act(statistics_.bytes[of], static_cast<std::int64_t>(bytes));
      act(statistics_.requested[of], static_cast<std::int64_t>(requested));
    }
  }
  template <typename Act>
  void every(Act act) noexcept {
    for (SeriesByPool* const all :
         {&statistics_.blocks, &statistics_.bytes, &statistics_.requested}) {
      for (Series& series : *all) act(series);
    }
  }

  mutable ShortLock mutex_;
  Statistics statistics_;  ///< guarded by mutex_
};

}  // namespace weir::torch_plug
