#include "allocator/size_class_index.hpp"

#include <algorithm>

namespace weir {

Block& SizeClassIndex::add(Segment segment, Bytes size) {
  Bucket& bucket = buckets_[size.count];
  Block& block = blocks_.insert(segment.pointer);
  block.size = size;
  ++bucket.blocks;
  return block;
}

bool SizeClassIndex::remove_allocated(Block& block) {
  remove(block);
  return true;
}

void SizeClassIndex::remove(Block& block) {
  // The lists of a size stay while blocks of that size do, so that steady reuse allocates nothing.
  const auto bucket = buckets_.find(block.size.count);
  if (--bucket->second.blocks == 0) buckets_.erase(bucket);
  keep_points(block);
  blocks_.erase(block);
}

auto SizeClassIndex::lists_of(Bytes size) const -> std::span<const std::unique_ptr<CachedList>> {
  const auto bucket = buckets_.find(size.count);
  if (bucket == buckets_.end()) return {};
  return bucket->second.lists;
}

SizeClassIndex::CachedList& SizeClassIndex::list_for(Bytes size, StreamId home) {
  for (const auto& list : lists_of(size)) {
    if (list->home == home) return *list;
  }
  auto list = std::make_unique<CachedList>();
  list->home = home;
  list->book = &book_of(home);
  return *buckets_[size.count].lists.emplace_back(std::move(list));
}

void SizeClassIndex::set_owner(Block& block) {
  if (block.owner == nullptr || block.owner->home != block.home) {
    block.owner = &list_for(block.size, block.home);
  }
}

void SizeClassIndex::place_cached(Block& block) {
  block.state = BlockState::kCached;
  list_of(block).blocks.insert_sorted(block, [](const Block& b) { return b.home_sequence; });
  cached_by_age_.insert_sorted(block, [](const Block& b) { return b.moved_at; });
}

Block* SizeClassIndex::take(Block& block) {
  list_of(block).blocks.remove(block);
  cached_by_age_.remove(block);
  return &block;
}

Block* SizeClassIndex::take_own(Bytes size, StreamId stream) {
  for (const auto& list : lists_of(size)) {
    if (list->home != stream) continue;
    Block* block = list->blocks.back();  // last in, first out: its bytes are the warmest
    return block != nullptr ? take(*block) : nullptr;
  }
  return nullptr;
}

Block* SizeClassIndex::take_passed(Bytes size, StreamId /*stream*/) {
  for (const auto& list : lists_of(size)) {
    Block* block = list->blocks.front();  // the earliest point of the list
    if (block != nullptr && list->passed(*block)) return take(*block);
  }
  return nullptr;
}

Block* SizeClassIndex::take_unpassed(Bytes size) {
  Block* oldest = nullptr;
  for (const auto& list : lists_of(size)) {
    Block* front = list->blocks.front();
    if (front == nullptr) continue;
    if (oldest == nullptr || front->moved_at < oldest->moved_at) oldest = front;
  }
  return oldest != nullptr ? take(*oldest) : nullptr;
}

Bytes SizeClassIndex::take_releasable(Bytes need, std::vector<Segment>& taken) {
  Bytes sum;
  taken.reserve(blocks_.size());  // so that no block is lost between two places
  Block* block = cached_by_age_.front();
  while (block != nullptr && sum < need) {
    Block* next = BlockList<&Block::by_age>::next(*block);
    if (block->owner->passed(*block)) {
      sum += block->size;
      taken.push_back({block->pointer, block->size});
      remove(*take(*block));
    }
    block = next;
  }
  return sum;
}

Bytes SizeClassIndex::releasable() const {
  Bytes sum;
  for (const Block* block = cached_by_age_.front(); block != nullptr;
       block = BlockList<&Block::by_age>::next(*block)) {
    if (block->owner->passed(*block)) sum += block->size;
  }
  return sum;
}

void SizeClassIndex::for_each_segment(const std::function<void(Segment)>& visit) const {
  for_each([&](const Block& block) { visit({block.pointer, block.size}); });
}

const Block* SizeClassIndex::oldest_unpassed() const {
  const Block* block = cached_by_age_.front();
  while (block != nullptr && block->owner->passed(*block)) {
    block = BlockList<&Block::by_age>::next(*block);
  }
  return block;
}

Bytes SizeClassIndex::largest_cached() const {
  Bytes largest;
  for (const auto& [size, bucket] : buckets_) {
    const bool any =
        std::ranges::any_of(bucket.lists, [](const auto& list) { return !list->blocks.empty(); });
    if (any) largest = std::max(largest, Bytes{size});
  }
  return largest;
}

}  // namespace weir
