#include "allocator/block_index.hpp"

#include <algorithm>
#include <utility>

namespace weir {

void Block::add_use(StreamId stream) {
  if (stream == home) return;
  if (others == nullptr) others = std::make_unique<std::vector<Point>>();
  if (std::ranges::count(*others, stream, &Point::stream) == 0) others->push_back({stream, 0});
}

void Block::set_label(std::string_view text) noexcept {
  label = {};
  std::ranges::copy(text.substr(0, kLabel), label.begin());
}

std::string_view Block::label_view() const noexcept {
  return {label.begin(), std::ranges::find(label, '\0')};
}

Block& BlockIndex::add(void* pointer, Bytes size) {
  Bucket& bucket = buckets_[size.count];
  Block& block = blocks_.insert(pointer);
  block.size = size;
  ++bucket.blocks;
  return block;
}

void BlockIndex::remove(Block& block) {
  // The lists of a size stay while blocks of that size do, so that steady reuse allocates nothing.
  const auto bucket = buckets_.find(block.size.count);
  if (--bucket->second.blocks == 0) buckets_.erase(bucket);
  blocks_.erase(block);
}

std::span<const std::unique_ptr<CachedList>> BlockIndex::lists_of(Bytes size) const {
  const auto bucket = buckets_.find(size.count);
  if (bucket == buckets_.end()) return {};
  return bucket->second.lists;
}

CachedList& BlockIndex::list_for(Bytes size, StreamId home) {
  for (const auto& list : lists_of(size)) {
    if (list->home == home) return *list;
  }
  auto list =
      std::make_unique<CachedList>(CachedList{.home = home, .book = &streams_[home], .blocks = {}});
  return *buckets_[size.count].lists.emplace_back(std::move(list));
}

void BlockIndex::prepare_free(Block& block) {
  for (const Point& point : block.other_points()) (void)streams_[point.stream];
  if (block.list == nullptr || block.list->home != block.home) {
    block.list = &list_for(block.size, block.home);
  }
}

bool BlockIndex::is_passed(Point point) const {
  const auto book = streams_.find(point.stream);
  return book != streams_.end() && point.sequence <= book->second.passed;
}

std::optional<Point> BlockIndex::blocking_point(const Block& block) const {
  // The own stream may reuse a block before its own point, but only once that is recorded: from
  // then on the block can also be given to others.
  const bool needs_home = awaits_home_ || block.home_sequence == Block::kUnrecorded;
  if (needs_home && !block.list->passed(block)) return block.home_point();
  for (const Point& point : block.other_points()) {
    if (!is_passed(point)) return point;
  }
  return std::nullopt;
}

std::uint64_t BlockIndex::sequence_on(const Block& block, StreamId stream) {
  if (block.home == stream) return block.home_sequence;
  for (const Point& point : block.other_points()) {
    if (point.stream == stream) return point.sequence;
  }
  return 0;
}

void BlockIndex::place_freed(Block& block) {
  const auto note = [](StreamBook& book, std::uint64_t sequence) {
    if (sequence != Block::kUnrecorded) book.last = std::max(book.last, sequence);
  };
  note(*block.list->book, block.home_sequence);
  for (const Point& point : block.other_points()) note(streams_[point.stream], point.sequence);
  const auto blocking = blocking_point(block);
  if (!blocking) {
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

Bytes BlockIndex::note_recorded(Point point, std::uint64_t freed_by) {
  Bytes moved;
  std::vector<Block*> parked;
  StreamBook& book = streams_[point.stream];
  for (Block* block = book.awaiting.front(); block != nullptr;
       block = BlockList<&Block::by_stream>::next(*block)) {
    const bool is_parked = sequence_on(*block, point.stream) == Block::kUnrecorded;
    if (is_parked && block->moved_at <= freed_by) parked.push_back(block);
  }
  for (Block* block : parked) {
    book.awaiting.remove(*block);
    if (block->home == point.stream) block->home_sequence = point.sequence;
    for (Point& own : block->other_points()) {
      if (own.stream == point.stream) own.sequence = point.sequence;
    }
    // Sorted in anew: the point can be one that is known to be passed, which no poll tells again.
    place_freed(*block);
    if (block->state == BlockState::kCached) moved += block->size;
  }
  return moved;
}

void BlockIndex::place_cached(Block& block) {
  block.state = BlockState::kCached;
  block.list->blocks.insert_sorted(block, [](const Block& b) { return b.home_sequence; });
  cached_by_age_.insert_sorted(block, [](const Block& b) { return b.moved_at; });
}

Block* BlockIndex::take(Block& block) {
  block.list->blocks.remove(block);
  cached_by_age_.remove(block);
  return &block;
}

Block* BlockIndex::take_own(Bytes size, StreamId stream) {
  for (const auto& list : lists_of(size)) {
    if (list->home != stream) continue;
    Block* block = list->blocks.back();  // last in, first out: its bytes are the warmest
    return block != nullptr ? take(*block) : nullptr;
  }
  return nullptr;
}

Block* BlockIndex::take_passed(Bytes size) {
  for (const auto& list : lists_of(size)) {
    Block* block = list->blocks.front();  // the earliest point of the list
    if (block != nullptr && list->passed(*block)) return take(*block);
  }
  return nullptr;
}

Block* BlockIndex::take_unpassed(Bytes size) {
  Block* oldest = nullptr;
  for (const auto& list : lists_of(size)) {
    Block* front = list->blocks.front();
    if (front == nullptr) continue;
    if (oldest == nullptr || front->moved_at < oldest->moved_at) oldest = front;
  }
  return oldest != nullptr ? take(*oldest) : nullptr;
}

Bytes BlockIndex::take_releasable(Bytes need, std::vector<Segment>& taken) {
  Bytes sum;
  taken.reserve(blocks_.size());  // so that no block is lost between two places
  Block* block = cached_by_age_.front();
  while (block != nullptr && sum < need) {
    Block* next = BlockList<&Block::by_age>::next(*block);
    if (block->list->passed(*block)) {
      sum += block->size;
      taken.push_back({block->pointer, block->size});
      remove(*take(*block));
    }
    block = next;
  }
  return sum;
}

Bytes BlockIndex::releasable() const {
  Bytes sum;
  for (const Block* block = cached_by_age_.front(); block != nullptr;
       block = BlockList<&Block::by_age>::next(*block)) {
    if (block->list->passed(*block)) sum += block->size;
  }
  return sum;
}

namespace {

/// The block freed longest ago of those that it was shown, and the point that it waits for.
class Oldest {
 public:
  void consider(const Block& block, Point point) {
    if (point.sequence == Block::kUnrecorded) return;
    if (block_ != nullptr && block_->moved_at <= block.moved_at) return;
    block_ = &block;
    point_ = point;
  }
  [[nodiscard]] std::optional<Point> point() const {
    return block_ != nullptr ? std::optional{point_} : std::nullopt;
  }

 private:
  const Block* block_ = nullptr;
  Point point_;
};

}  // namespace

std::optional<Point> BlockIndex::oldest_awaiting() const {
  Oldest oldest;
  for (const auto& [stream, book] : streams_) {
    const Block* front = book.awaiting.front();
    if (front != nullptr) oldest.consider(*front, {stream, sequence_on(*front, stream)});
  }
  return oldest.point();
}

std::optional<Point> BlockIndex::oldest_outstanding() const {
  Oldest oldest;
  for (const auto& [stream, book] : streams_) {
    const Block* front = book.awaiting.front();
    if (front != nullptr) oldest.consider(*front, {stream, sequence_on(*front, stream)});
  }
  for (const Block* block = cached_by_age_.front(); block != nullptr;
       block = BlockList<&Block::by_age>::next(*block)) {
    if (block->list->passed(*block)) continue;
    oldest.consider(*block, block->home_point());
    break;
  }
  return oldest.point();
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
    const bool any =
        std::ranges::any_of(bucket.lists, [](const auto& list) { return !list->blocks.empty(); });
    if (any) largest = std::max(largest, Bytes{size});
  }
  return largest;
}

}  // namespace weir
