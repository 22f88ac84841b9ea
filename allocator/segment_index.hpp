#pragma once

// The blocks of `best_fit`: pieces of segments. Small requests are cut from runs of kSmallRun,
// which are cut from the segments like any large block, and are a large piece again when all of one
// is free.
//
// Segments have one size; a block that is larger has one of its own. One segment that is as large
// as the budget is what RMM's pool has with all its memory given at the start.

#include "allocator/heap_index.hpp"

namespace weir {

class SegmentIndex final : public HeapIndex {
 public:
  static constexpr Bytes kSmallRun = mib(4);

  /// Segments of `segment`, or as large as there is room, if that is less.
  explicit SegmentIndex(Bytes segment) : segment_(segment) {}

  [[nodiscard]] Bytes segment_size(Bytes size, Bytes room) const override;
  /// Growth past a quarter more than was ever held is for a request that no cached segment has room
  /// for, though there is as much: those that are free as a whole are in its way.
  [[nodiscard]] Bytes unused_by(Bytes reserved, Bytes most_held) const override {
    return minus_or_zero(reserved, most_held + Bytes{most_held.count / 4});
  }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] bool remove_allocated(Block& block) override;
  Bytes take_releasable(Bytes need, std::vector<Segment>& taken) override;
  [[nodiscard]] Bytes releasable() const override;
  void for_each_segment(const std::function<void(Segment)>& visit) const override;

 private:
  [[nodiscard]] static bool is_whole_segment(const Block& piece) {
    return piece.neighbours.previous == nullptr && piece.neighbours.next == nullptr;
  }
  [[nodiscard]] Block* take_elsewhere(Bytes size, StreamId stream) override;
  [[nodiscard]] bool changes_area(const Block& piece) const override;
  /// The first `size` bytes of a run that is in no list; the rest is for small requests as well.
  Block* begin_run(Block& run, Bytes size);

  const Bytes segment_;
};

}  // namespace weir
