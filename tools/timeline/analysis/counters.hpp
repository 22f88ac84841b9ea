#pragma once

// Rebuilds a pool's byte counts from its events and compares them with the counts that the pool
// recorded.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// A pool's byte counts at one moment.
struct PoolCounts {
  std::uint64_t allocated = 0;
  std::uint64_t awaiting = 0;
  std::uint64_t cached = 0;

  [[nodiscard]] constexpr std::uint64_t reserved() const noexcept {
    return add_capped(add_capped(allocated, awaiting), cached);
  }
  friend constexpr bool operator==(const PoolCounts&, const PoolCounts&) noexcept = default;
};

/// Replays the events of one pool, in the pool's own order.
///
/// Where an event is missing, the counts continue from the pool's own counts in the next record,
/// and `known()` is false until the next kPool.
class PoolReplay {
 public:
  /// Both arguments must outlive this.
  PoolReplay(const Index& index, const PoolInfo& pool)
      : index_(&index), pool_(&pool), lossy_(index.lost() != 0) {}

  /// Moves to the next record. Returns false after the last.
  bool next();
  /// Returns `at()` after the next `next()`; after the last record, the largest number.
  [[nodiscard]] std::uint64_t next_at() const;

  [[nodiscard]] const TimelineRecord& record() const { return at_place(next_ - 1); }
  /// The record's index in PoolInfo::records.
  [[nodiscard]] std::uint32_t position() const noexcept {
    return static_cast<std::uint32_t>(next_ - 1);
  }
  /// The record's begin, but never before that of an earlier record.
  [[nodiscard]] std::uint64_t at() const noexcept { return at_; }
  /// The counts after the record, from events alone.
  [[nodiscard]] const PoolCounts& counts() const noexcept { return counts_; }
  /// Requested bytes; if not known(), only of the known blocks.
  [[nodiscard]] std::uint64_t requested() const noexcept { return requested_; }
  [[nodiscard]] std::uint64_t budget() const noexcept { return budget_; }
  /// Returns whether no event is missing since the last kPool.
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// The kAllocate or kLive that the record ended; null if none.
  [[nodiscard]] const TimelineRecord* ended() const;
  /// Returns whether the record is a kPool: it restarts the counts, and the following kLive records
  /// list the allocated blocks.
  [[nodiscard]] bool anew() const { return record().kind == TimelineKind::kPool; }
  /// Returns whether the record allocates a block.
  [[nodiscard]] bool hands_out() const {
    return record().kind == TimelineKind::kAllocate || record().kind == TimelineKind::kLive;
  }

  /// Returns whether the record contradicts the counts from events, and no event was lost.
  [[nodiscard]] bool disagreed() const noexcept { return disagreed_; }
  /// The number of missing events so far, as shown by the pool's own counts.
  [[nodiscard]] std::uint64_t gaps() const noexcept { return gaps_; }
  /// The number of frees without a known block so far.
  [[nodiscard]] std::uint64_t strays() const noexcept { return strays_; }

 private:
  [[nodiscard]] const TimelineRecord& at_place(std::size_t position) const {
    return index_->record(pool_->records[position]);
  }
  void apply(const TimelineRecord& record);
  void begin_anew(const TimelineRecord& record);
  void check_live(const TimelineRecord& record);
  void compare(const TimelineRecord& record);
  void note_gap() noexcept;

  const Index* index_;
  const PoolInfo* pool_;
  std::size_t next_ = 0;
  std::uint64_t at_ = 0;
  PoolCounts counts_;
  std::uint64_t requested_ = 0;
  std::uint64_t budget_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t live_ = 0;  ///< bytes of kLive since the last kPool
  bool counts_live_ = false;
  bool lossy_;
  bool began_ = false;
  bool known_ = false;
  bool disagreed_ = false;
  std::uint64_t gaps_ = 0;
  std::uint64_t strays_ = 0;
};

struct AccountingCheck {
  std::uint64_t compared = 0;  ///< number of records compared
  std::uint64_t gaps = 0;      ///< missing events where the recording reports lost ones
  std::uint64_t strays = 0;    ///< frees without a known block
  std::uint64_t differ = 0;    ///< records that contradict the counts from events
  std::uint64_t first_at = 0;  ///< when the first of these was
};
/// Rebuilds the counts of every pool and compares them at each record. A difference is a gap if
/// events were lost and a sequence number is missing before it; otherwise it is a disagreement.
[[nodiscard]] AccountingCheck check_accounting(const Index& index);

/// The highest figures of a pool.
struct PoolPeaks {
  std::uint16_t source = 0;
  std::string name{};
  bool host = false;
  std::uint64_t peak_allocated = 0;
  std::uint64_t peak_held = 0;  ///< allocated + awaiting
  std::uint64_t peak_reserved = 0;
  std::uint64_t peak_at = 0;      ///< begin of the peak of held bytes
  std::uint32_t peak_batch = 0;   ///< the batch whose allocation made it; 0: none
  std::uint64_t peak_budget = 0;  ///< the budget at that time
};
[[nodiscard]] PoolPeaks pool_peaks(const Index& index, const PoolInfo& pool);
/// Returns the pool that reports name: the device pool with the highest peak, else the host pool
/// with the highest peak; null if there is none. `peaks` is in the order of index.pools().
[[nodiscard]] const PoolPeaks* main_pool(std::span<const PoolPeaks> peaks) noexcept;

/// Memory that libraries such as cuBLAS and NCCL got from the driver, outside our pools.
struct LibraryMemory {
  std::string library{};  ///< empty: unknown
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};
struct DriverMemoryFigures {
  bool told = false;                     ///< a profiler reported driver memory
  std::uint64_t device_peak = 0;         ///< peak of device memory given out by the driver
  std::uint64_t peak_at = 0;             ///< begin of that peak
  std::vector<LibraryMemory> at_peak{};  ///< the owners at that time, most bytes first
  std::uint64_t pinned_peak = 0;         ///< peak of pinned host memory
  /// Of the driver's own pools, which serve cudaMallocAsync.
  std::uint64_t pools_used_peak = 0;
  std::uint64_t pools_reserved_peak = 0;
};
[[nodiscard]] DriverMemoryFigures driver_memory(const Index& index);

}  // namespace weir::timeline
