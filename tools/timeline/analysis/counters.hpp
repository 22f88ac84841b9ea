#pragma once

// The books of a pool, rebuilt from what happened to it, and compared with what it wrote itself.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/timeline/analysis/index.hpp"
#include "tools/timeline/analysis/reduce.hpp"

namespace weir::timeline {

/// A pool's books at one moment, in bytes.
struct Books {
  std::uint64_t allocated = 0;
  std::uint64_t awaiting = 0;
  std::uint64_t cached = 0;

  [[nodiscard]] constexpr std::uint64_t reserved() const noexcept {
    return add_capped(add_capped(allocated, awaiting), cached);
  }
  friend constexpr bool operator==(const Books&, const Books&) noexcept = default;
};

/// Goes through what happened to one pool, in the pool's own order.
///
/// Where an event is missing, the books go on from the pool's own of the next record, and `known()`
/// is false until the next kPool.
class PoolReplay {
 public:
  /// Both must outlive it.
  PoolReplay(const Index& index, const PoolInfo& pool)
      : index_(&index), pool_(&pool), lossy_(index.lost() != 0) {}

  /// To the next record; false behind the last.
  bool next();
  /// What `at()` will be after the next `next()`; the largest number behind the last.
  [[nodiscard]] std::uint64_t next_at() const;

  [[nodiscard]] const TimelineRecord& record() const { return at_place(next_ - 1); }
  /// The record's place in PoolInfo::records.
  [[nodiscard]] std::uint32_t position() const noexcept {
    return static_cast<std::uint32_t>(next_ - 1);
  }
  /// When: the record's begin, but never before that of an earlier one.
  [[nodiscard]] std::uint64_t at() const noexcept { return at_; }
  /// After the record, from the events alone.
  [[nodiscard]] const Books& books() const noexcept { return books_; }
  /// What holders asked for; where not known(), of the blocks that are known.
  [[nodiscard]] std::uint64_t requested() const noexcept { return requested_; }
  [[nodiscard]] std::uint64_t budget() const noexcept { return budget_; }
  /// Whether no event is missing since the last kPool.
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// The kAllocate or kLive that the record ended; null where it ended none.
  [[nodiscard]] const TimelineRecord* ended() const;
  /// The record began anew: it is a kPool, and nothing is handed out but what kLive says next.
  [[nodiscard]] bool anew() const { return record().kind == TimelineKind::kPool; }
  /// The record hands a block out.
  [[nodiscard]] bool hands_out() const {
    return record().kind == TimelineKind::kAllocate || record().kind == TimelineKind::kLive;
  }

  /// The books by the events, where the record says otherwise and no event was lost.
  [[nodiscard]] const std::optional<Books>& disagreed() const noexcept { return disagreed_; }
  /// How often so far the pool's own books told that an event is missing.
  [[nodiscard]] std::uint64_t gaps() const noexcept { return gaps_; }
  /// Frees so far of what nobody held.
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
  Books books_;
  std::uint64_t requested_ = 0;
  std::uint64_t budget_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t live_ = 0;  ///< bytes of kLive since the last kPool
  bool counts_live_ = false;
  bool lossy_;
  bool began_ = false;
  bool known_ = false;
  std::optional<Books> disagreed_;
  std::uint64_t gaps_ = 0;
  std::uint64_t strays_ = 0;
};

/// One record whose books are not what the events add up to.
struct Disagreement {
  std::uint16_t source = 0;  ///< the pool
  std::uint64_t sequence = 0;
  std::uint64_t at = 0;
  Books rebuilt{};
  Books written{};
};
struct BooksCheck {
  std::uint64_t compared = 0;  ///< records whose books were looked at
  std::uint64_t gaps = 0;      ///< missing events, where the recording says that some are lost
  std::uint64_t strays = 0;    ///< frees of what nobody held
  std::uint64_t differ = 0;    ///< all disagreements
  std::vector<Disagreement> first{};  ///< of these, the first `most`
};
/// Rebuilds the books of every pool and compares them at each record. Where events were lost, a
/// difference behind a missing sequence number is a gap; everywhere else it is a disagreement.
[[nodiscard]] BooksCheck check_books(const Index& index, std::size_t most = 100);

/// What can be drawn of a pool over time.
struct PoolSeries {
  std::uint16_t source = 0;
  std::string name{};
  bool host = false;
  std::vector<Point> requested{};
  std::vector<Point> allocated{};
  std::vector<Point> awaiting{};
  std::vector<Point> cached{};
  std::vector<Point> reserved{};
  std::vector<Point> budget{};
  std::vector<Span> unknown{};  ///< when events are missing
  std::uint64_t peak_allocated = 0;
  std::uint64_t peak_held = 0;  ///< allocated + awaiting
  std::uint64_t peak_reserved = 0;
  std::uint64_t peak_at = 0;      ///< when the peak of held began
  std::uint32_t peak_batch = 0;   ///< whose allocation made it; 0: none
  std::uint64_t peak_budget = 0;  ///< in force then
};
/// In one pass, reduced to `columns` columns of `span`: more than a screen has where tiles are cut
/// from it.
[[nodiscard]] PoolSeries pool_series(const Index& index, const PoolInfo& pool, Span span,
                                     std::uint32_t columns);
/// The pool that reports name: the one of device memory with the highest peak, else of host memory.
/// Null where there is none. `series` as of index.pools().
[[nodiscard]] const PoolSeries* main_pool(std::span<const PoolSeries> series) noexcept;

}  // namespace weir::timeline
