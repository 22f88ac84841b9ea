#pragma once

// The blocks of `best_fit`: pieces of segments. Small requests are cut from runs, which are cut
// from the segments like any large block, and are a large piece again when all of one is free.
//
// Segments have one size; a block that is larger has one of its own. One segment that is as large
// as the budget is what RMM's pool has with all its memory given at the start.

#include <algorithm>

#include "allocator/index/heap_index.hpp"

namespace weir {

class SegmentIndex final : public HeapIndex {
 public:
  /// A run has this size, or that share of a smaller budget: a program with a few small tensors
  /// would lack the rest of it. A budget with no room for a large block may be one run.
  static constexpr Bytes kSmallRun = mib(4);
  static constexpr std::uint64_t kRunShare = 64;
  /// A block of up to kAtEnd, or a run of small ones, that finds nothing better than a piece of
  /// kWide or more is cut from its end: large blocks are cut from the front, and do not get it
  /// between them. With all memory in one segment random blocks and growing lists complete in less
  /// for it.
  static constexpr Bytes kAtEnd = mib(16);
  static constexpr Bytes kWide = mib(256);

  /// Segments of `segment`, or as large as there is room, if that is less.
  SegmentIndex(Bytes segment, Bytes budget)
      : segment_(whole_granules(segment)), run_(run_size(budget)) {}

  /// How large runs of small blocks are in a pool that begins with this budget.
  [[nodiscard]] static Bytes run_size(Bytes budget) {
    if (budget <= kSmall) return kSmallRun;
    return std::min(kSmallRun, whole_granules({budget.count / kRunShare}));
  }

  [[nodiscard]] Bytes segment_size(Bytes size, Bytes room) const override;
  /// Growth past a quarter more than was ever held is for a request that no cached segment has room
  /// for, though there is as much: those that are free as a whole are in its way.
  [[nodiscard]] Bytes unused_by(Bytes reserved, Bytes most_held) const override {
    return minus_or_zero(reserved, most_held + Bytes{most_held.count / 4});
  }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] bool remove_allocated(Block& block) override;
  void for_each_segment(const std::function<void(Segment)>& visit) const override;

 private:
  /// Blocks are cut from both ends, and each begins at a multiple of the granule.
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
  /// A small block from a new run, of the large piece that `find(size of the run)` gives; null
  /// where it gives none.
  template <typename Find>
  [[nodiscard]] Block* take_from_large(Bytes size, const Find& find);
  [[nodiscard]] bool changes_area(const Block& piece) const override;
  /// The first `size` bytes of a run that is in no list; the rest is for small requests as well.
  Block* begin_run(Block& run, Bytes size);

  const Bytes segment_;
  const Bytes run_;
};

}  // namespace weir
