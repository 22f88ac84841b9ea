#include "allocator/index/segment_index.hpp"

#include <algorithm>

namespace weir {

Bytes SegmentIndex::segment_size(Bytes size, Bytes room) const {
  return std::min(std::max(size, segment_), std::max(size, whole_granules(room)));
}

Block& SegmentIndex::add(Segment segment, Bytes size) {
  reserve_bins(kSmallArea, segment.size);
  reserve_bins(kLargeArea, segment.size);
  blocks_.promise(3);  // so that nothing fails halfway
  blocks_.redeem(3);
  Block& block = blocks_.insert(segment.pointer);
  block.size = segment.size;
  give_to(block, &common_.at(kLargeArea));
  const bool small = area_of(size) == kSmallArea;
  const Bytes front = small ? std::max(size, std::min(run_, segment.size)) : size;
  if (block.size > front) insert(split(block, front));
  return small ? *begin_run(block, size) : block;
}

Block* SegmentIndex::begin_run(Block& run, Bytes size) {
  change_area(run);
  if (run.size > size) insert(split(run, size));
  return &run;
}

template <typename Find>
Block* SegmentIndex::take_from_large(Bytes size, const Find& find) {
  if (area_of(size) != kSmallArea) return nullptr;
  Bytes run = std::max(size, run_);
  Block* piece = find(run);
  if (piece == nullptr && run > size) {
    // Last resort, since it cuts up pieces that large requests need.
    run = size;
    piece = find(run);
  }
  if (piece == nullptr) return nullptr;
  blocks_.promise(2);
  blocks_.redeem(2);
  return begin_run(*take_part(*piece, run), size);
}

Block* SegmentIndex::take_elsewhere(Bytes size, StreamId stream) {
  return take_from_large(size, [&](Bytes run) { return best(run, stream, kLargeArea); });
}

Block* SegmentIndex::take_unpassed_elsewhere(Bytes size) {
  return take_from_large(size, [&](Bytes run) { return oldest_unpassed(run, kLargeArea); });
}

bool SegmentIndex::changes_area(const Block& piece) const {
  const Block* next = piece.neighbours.next;
  const bool ends_run = next == nullptr || !is_small(*next) || next->begins_run;
  return piece.begins_run && ends_run;
}

bool SegmentIndex::remove_allocated(Block& block) {
  if (!is_whole_segment(block)) return false;
  keep_points(block);
  give_to(block, nullptr);
  blocks_.erase(block);
  return true;
}

void SegmentIndex::remove_releasable(Block& piece) {
  take_out(piece);
  give_to(piece, nullptr);
  blocks_.erase(piece);
}

void SegmentIndex::for_each_segment(const std::function<void(Segment)>& visit) const {
  for_each([&](const Block& first) {
    if (first.neighbours.previous != nullptr) return;
    Bytes size;
    for (const Block* b = &first; b != nullptr; b = b->neighbours.next) size += b->size;
    visit({first.pointer, size});
  });
}

}  // namespace weir
