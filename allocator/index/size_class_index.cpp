#include "allocator/index/size_class_index.hpp"

#include <algorithm>

namespace weir {

Block& SizeClassIndex::add(Segment segment, Bytes size) {
  Bucket& bucket = buckets_[size.count];
  bucket.common.state = &nobody_;
  bucket.common.bucket = &bucket;
  Block& block = blocks_.insert(segment.pointer);
  block.size = size;
  give_to(block, &bucket.common);
  ++bucket.blocks;
  return block;
}

bool SizeClassIndex::remove_allocated(Block& block) {
  remove(block);
  return true;
}

void SizeClassIndex::remove(Block& block) {
  // Keep a size's lists while blocks of that size exist, so that steady reuse allocates nothing.
  give_to(block, nullptr);
  const auto bucket = buckets_.find(block.size.count);
  if (--bucket->second.blocks == 0) buckets_.erase(bucket);
  keep_points(block);
  blocks_.erase(block);
}

SizeClassIndex::Bucket* SizeClassIndex::find_bucket(Bytes size) {
  const auto bucket = buckets_.find(size.count);
  return bucket == buckets_.end() ? nullptr : &bucket->second;
}

SizeClassIndex::CachedList* SizeClassIndex::find_own(Bucket& bucket, StreamId stream) {
  if (bucket.last != nullptr && bucket.last->home == stream) return bucket.last;
  const auto own = bucket.own.find(stream);
  if (own == bucket.own.end()) return nullptr;
  bucket.last = &own->second;
  return bucket.last;
}

void SizeClassIndex::forget_idle_lists(Bucket& bucket) noexcept {
  bucket.last = nullptr;
  std::erase_if(bucket.own, [](const auto& each) { return each.second.blocks == 0; });
  bucket.forget_at = std::max(kIdleStreams, 2 * bucket.own.size());
}

void SizeClassIndex::set_owner(Block& block, StreamId stream) {
  Bucket& bucket = *list_of(block).bucket;
  CachedList* own = find_own(bucket, stream);
  if (own == nullptr) {
    if (bucket.own.size() >= bucket.forget_at) forget_idle_lists(bucket);
    own = bucket.last = &bucket.own[stream];
    own->home = stream;
    own->bucket = &bucket;
  }
  if (own->blocks == 0) own->state = &state_of(stream);  // else the state is current
  give_to(block, own);
}

void SizeClassIndex::place_cached(Block& block) noexcept {
  block.state = BlockState::kCached;
  if (block.owner->passed(block)) {
    insert_common(block, list_of(block).bucket->common);
    return;
  }
  list_of(block).cached.push_back(block);
  block.owner->state->add_unpassed(block);
}

void SizeClassIndex::make_common(Block& block) {
  insert_common(*take(block), list_of(block).bucket->common);
}

void SizeClassIndex::insert_common(Block& block, CachedList& common) {
  block.home_sequence = 0;
  give_to(block, &common);
  common.cached.push_back(block);
  add_releasable(block, block.size);
}

Block* SizeClassIndex::take(Block& block) {
  list_of(block).cached.remove(block);
  if (is_common(block)) {
    subtract_releasable(block, block.size);
  } else {
    block.owner->state->remove_unpassed(block);
  }
  return &block;
}

Block* SizeClassIndex::take_own(Bytes size, StreamId stream) {
  if (reuse_ == Reuse::kNone) return nullptr;
  Bucket* bucket = find_bucket(size);
  if (bucket == nullptr) return nullptr;
  // Last in, first out: its bytes are warmest in caches.
  const CachedList* own = find_own(*bucket, stream);
  Block* block = own != nullptr ? own->cached.back() : nullptr;
  if (block == nullptr) block = bucket->common.cached.back();
  return block != nullptr ? take(*block) : nullptr;
}

Block* SizeClassIndex::take_passed(Bytes size, StreamId stream) { return take_own(size, stream); }

Block* SizeClassIndex::oldest_unpassed(const Bucket& bucket) {
  Block* oldest = nullptr;
  for (const auto& [stream, own] : bucket.own) {
    Block* front = own.cached.front();
    if (front == nullptr) continue;
    if (oldest == nullptr || front->moved_at < oldest->moved_at) oldest = front;
  }
  return oldest;
}

Block* SizeClassIndex::take_unpassed(Bytes size) {
  const Bucket* bucket = find_bucket(size);
  Block* oldest = bucket != nullptr ? oldest_unpassed(*bucket) : nullptr;
  return oldest != nullptr ? take(*oldest) : nullptr;
}

const Block* SizeClassIndex::find_unpassed(Bytes size) const {
  const auto bucket = buckets_.find(size.count);
  return bucket != buckets_.end() ? oldest_unpassed(bucket->second) : nullptr;
}

void SizeClassIndex::remove_releasable(Block& block) { remove(*take(block)); }

void SizeClassIndex::for_each_segment(const std::function<void(Segment)>& visit) const {
  for_each([&](const Block& block) { visit({block.pointer, block.size}); });
}

Bytes SizeClassIndex::largest_cached() const {
  Bytes largest;
  for (const auto& [size, bucket] : buckets_) {
    const bool any =
        !bucket.common.cached.empty() ||
        std::ranges::any_of(bucket.own, [](const auto& own) { return !own.second.cached.empty(); });
    if (any) largest = std::max(largest, Bytes{size});
  }
  return largest;
}

}  // namespace weir
