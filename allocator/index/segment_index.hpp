#pragma once

// The blocks of `best_fit`: pieces of segments. Small requests are cut from runs. A run is cut like
// a large block, and becomes a large piece when wholly free.
//
// Segments have one size, unless a block is larger. One segment as large as the budget corresponds
// to RMM's pool with all memory given at the start.

#include <algorithm>

#include "allocator/index/heap_index.hpp"

namespace weir {

class SegmentIndex final : public HeapIndex {
 public:
  /// A run's size, or 1/kRunShare of the budget if less: a program with a few small tensors wastes
  /// the rest of a run. A budget without room for a large block may be one run.
  static constexpr Bytes kSmallRun = mib(4);
  static constexpr std::uint64_t kRunShare = 64;
  /// A block up to kAtEnd, or a run, whose best fit is kWide or more is cut from the end, away from
  /// large blocks, which are cut from the front. In a single segment, random blocks and growing
  /// lists then need less memory.
  static constexpr Bytes kAtEnd = mib(16);
  static constexpr Bytes kWide = mib(256);

  /// Uses segments of `segment`, or of the room left, if less.
  SegmentIndex(Bytes segment, Bytes budget)
      : segment_(whole_granules(segment)), run_(run_size(budget)) {}

  [[nodiscard]] static Bytes run_size(Bytes budget) {
    if (budget <= kSmall) return kSmallRun;
    return std::min(kSmallRun, whole_granules({budget.count / kRunShare}));
  }

  [[nodiscard]] Bytes segment_size(Bytes size, Bytes room) const override;
  /// Growth beyond a quarter more than ever held means that cached segments suffice in sum but none
  /// fits: release the free ones.
  [[nodiscard]] Bytes unused_by(Bytes reserved, Bytes most_held) const override {
    return minus_or_zero(reserved, most_held + Bytes{most_held.count / 4});
  }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] bool remove_allocated(Block& block) override;
  void for_each_segment(const std::function<void(Segment)>& visit) const override;

 private:
  /// Keeps blocks aligned to granules when cut from both ends.
  [[nodiscard]] static Bytes whole_granules(Bytes size) {
    return {size.count / FreeBins::kGranule.count * FreeBins::kGranule.count};
  }
  [[nodiscard]] static bool is_whole_segment(const Block& piece) {
    return piece.neighbours.previous == nullptr && piece.neighbours.next == nullptr;
  }
  [[nodiscard]] Bytes releasable_of(const Block& piece) const noexcept override {
    return is_whole_segment(piece) ? piece.size : Bytes{};
  }
  void remove_releasable(Block& piece) override;
  [[nodiscard]] bool cuts_at_end(const Block& piece, Bytes size) const override {
    return size <= kAtEnd && piece.size >= kWide;
  }
  [[nodiscard]] Block* take_elsewhere(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_unpassed_elsewhere(Bytes size) override;
  /// A small block from a new run of the piece that `find(run size)` returns, or null.
  template <typename Find>
  [[nodiscard]] Block* take_from_large(Bytes size, const Find& find);
  [[nodiscard]] bool changes_area(const Block& piece) const override;
  /// The first `size` bytes of a run in no list; caches the rest for small requests.
  Block* begin_run(Block& run, Bytes size);

  const Bytes segment_;
  const Bytes run_;
};

}  // namespace weir
