#include "allocator/block_index.hpp"

#include <algorithm>
#include <utility>

namespace weir {

void Block::set_label(std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), label.size() - 1);
  std::copy_n(text.begin(), length, label.begin());
  label.at(length) = '\0';
}

Block& BlockIndex::add(void* pointer, Bytes size) {
  auto block = std::make_unique<Block>();
  block->pointer = pointer;
  block->size = size;
  Bucket& bucket = buckets_[size.count];
  Block& added = *(blocks_[pointer] = std::move(block));
  ++bucket.blocks;
  return added;
}

Block* BlockIndex::find(const void* pointer) const {
  const auto found = blocks_.find(pointer);
  return found == blocks_.end() ? nullptr : found->second.get();
}

std::unique_ptr<Block> BlockIndex::extract(Block& block) {
  // The lists of a size stay while blocks of that size do, so that steady reuse allocates nothing.
  const auto bucket = buckets_.find(block.size.count);
  if (--bucket->second.blocks == 0) buckets_.erase(bucket);
  return std::move(blocks_.extract(block.pointer).mapped());
}

void BlockIndex::prepare_free(Block& block) {
  block.points.reserve(1 + block.other_uses.size());
  (void)streams_[block.home];
  for (const StreamId stream : block.other_uses) (void)streams_[stream];
  std::vector<CachedList>& lists = lists_of(block.size);
  if (std::ranges::count(lists, block.home, &CachedList::home) == 0) {
    lists.push_back({.home = block.home, .blocks = {}});
  }
}

bool BlockIndex::is_passed(Point point) const {
  const auto book = streams_.find(point.stream);
  return book != streams_.end() && point.sequence <= book->second.passed;
}

const Point* BlockIndex::blocking_point(const Block& block) const {
  for (const Point& point : block.points) {
    // The own stream may reuse a block before its own point, but only once that is recorded: from
    // then on the block can also be given to others.
    const bool own = point.stream == block.home;
    if (own && !awaits_home_ && point.sequence != Block::kUnrecorded) continue;
    if (!is_passed(point)) return &point;
  }
  return nullptr;
}

std::uint64_t BlockIndex::sequence_on(const Block& block, StreamId stream) {
  for (const Point& point : block.points) {
    if (point.stream == stream) return point.sequence;
  }
  return 0;
}

void BlockIndex::place_freed(Block& block) {
  for (const Point& point : block.points) {
    StreamBook& book = streams_[point.stream];
    if (point.sequence != Block::kUnrecorded) book.last = std::max(book.last, point.sequence);
  }
  const Point* blocking = blocking_point(block);
  if (blocking == nullptr) {
    place_cached(block);
    return;
  }
  block.state = BlockState::kAwaiting;
  const StreamId stream = blocking->stream;
  streams_[stream].awaiting.insert_sorted(
      block, [stream](const Block& b) { return sequence_on(b, stream); });
}

Bytes BlockIndex::note_passed(StreamId stream, std::uint64_t sequence) {
  Bytes moved;
  StreamBook& book = streams_[stream];
  if (sequence <= book.passed) return moved;
  book.passed = sequence;
  while (Block* block = book.awaiting.front()) {
    if (sequence_on(*block, stream) > sequence) break;
    book.awaiting.remove(*block);
    place_freed(*block);  // may await another stream's point next
    if (block->state == BlockState::kCached) moved += block->size;
  }
  return moved;
}

Bytes BlockIndex::note_recorded(Point point) {
  Bytes moved;
  std::vector<Block*> parked;
  StreamBook& book = streams_[point.stream];
  for (Block* block = book.awaiting.front(); block != nullptr; block = StreamList::next(*block)) {
    if (sequence_on(*block, point.stream) == Block::kUnrecorded) parked.push_back(block);
  }
  for (Block* block : parked) {
    book.awaiting.remove(*block);
    for (Point& own : block->points) {
      if (own.stream == point.stream) own.sequence = point.sequence;
    }
    // Sorted in anew: the point can be one that is known to be passed, which no poll tells again.
    place_freed(*block);
    if (block->state == BlockState::kCached) moved += block->size;
  }
  return moved;
}

std::vector<BlockIndex::CachedList>& BlockIndex::lists_of(Bytes size) {
  static std::vector<CachedList> none;  // stays empty: lists are added by prepare_free alone
  const auto bucket = buckets_.find(size.count);
  return bucket == buckets_.end() ? none : bucket->second.lists;
}

void BlockIndex::place_cached(Block& block) {
  block.state = BlockState::kCached;
  std::vector<CachedList>& lists = lists_of(block.size);
  const auto list = std::ranges::find(lists, block.home, &CachedList::home);
  list->blocks.insert_sorted(block, [](const Block& b) { return b.home_point().sequence; });
  cached_by_age_.insert_sorted(block, [](const Block& b) { return b.freed_at; });
}

void BlockIndex::take(CachedList& list, Block& block) {
  list.blocks.remove(block);
  cached_by_age_.remove(block);
}

Block* BlockIndex::take_own(Bytes size, StreamId stream) {
  std::vector<CachedList>& lists = lists_of(size);
  const auto list = std::ranges::find(lists, stream, &CachedList::home);
  if (list == lists.end() || list->blocks.empty()) return nullptr;
  Block* block = list->blocks.back();  // last in, first out: its bytes are the warmest
  take(*list, *block);
  return block;
}

Block* BlockIndex::take_passed(Bytes size) {
  for (CachedList& list : lists_of(size)) {
    Block* block = list.blocks.front();  // the earliest point of the list
    if (block == nullptr || !is_passed(block->home_point())) continue;
    take(list, *block);
    return block;
  }
  return nullptr;
}

Block* BlockIndex::take_unpassed(Bytes size) {
  CachedList* oldest = nullptr;
  for (CachedList& list : lists_of(size)) {
    if (list.blocks.empty()) continue;
    if (oldest == nullptr || list.blocks.front()->freed_at < oldest->blocks.front()->freed_at) {
      oldest = &list;
    }
  }
  if (oldest == nullptr) return nullptr;
  Block* block = oldest->blocks.front();
  take(*oldest, *block);
  return block;
}

Bytes BlockIndex::take_releasable(Bytes need, std::vector<std::unique_ptr<Block>>& taken) {
  Bytes sum;
  taken.reserve(blocks_.size());  // so that no block is lost between two places
  Block* block = cached_by_age_.front();
  while (block != nullptr && sum < need) {
    Block* next = BlockList<&Block::by_age>::next(*block);
    if (is_passed(block->home_point())) {
      take(*std::ranges::find(lists_of(block->size), block->home, &CachedList::home), *block);
      sum += block->size;
      taken.push_back(extract(*block));
    }
    block = next;
  }
  return sum;
}

Bytes BlockIndex::releasable() const {
  Bytes sum;
  for (const Block* block = cached_by_age_.front(); block != nullptr;
       block = BlockList<&Block::by_age>::next(*block)) {
    if (is_passed(block->home_point())) sum += block->size;
  }
  return sum;
}

std::optional<Point> BlockIndex::oldest_outstanding() const {
  const Block* oldest = nullptr;
  Point point;
  const auto consider = [&](const Block& block, Point candidate) {
    if (candidate.sequence == Block::kUnrecorded) return;
    if (oldest != nullptr && oldest->freed_at <= block.freed_at) return;
    oldest = &block;
    point = candidate;
  };
  for (const auto& [stream, book] : streams_) {
    const Block* front = book.awaiting.front();
    if (front != nullptr) consider(*front, {stream, sequence_on(*front, stream)});
  }
  for (const Block* block = cached_by_age_.front(); block != nullptr;
       block = BlockList<&Block::by_age>::next(*block)) {
    if (is_passed(block->home_point())) continue;
    consider(*block, block->home_point());
    break;
  }
  return oldest != nullptr ? std::optional{point} : std::nullopt;
}

void BlockIndex::pending_streams(std::vector<StreamId>& pending,
                                 std::vector<StreamId>& unrecorded) const {
  for (const auto& [stream, book] : streams_) {
    if (book.last > book.passed) pending.push_back(stream);
    const Block* back = book.awaiting.back();
    if (back != nullptr && sequence_on(*back, stream) == Block::kUnrecorded) {
      unrecorded.push_back(stream);
    }
  }
}

Bytes BlockIndex::largest_cached() const {
  Bytes largest;
  for (const auto& [size, bucket] : buckets_) {
    const bool any = std::ranges::any_of(
        bucket.lists, [](const CachedList& list) { return !list.blocks.empty(); });
    if (any) largest = std::max(largest, Bytes{size});
  }
  return largest;
}

}  // namespace weir
