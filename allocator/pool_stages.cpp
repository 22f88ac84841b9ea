// The stages that a request goes through, in the order of docs/architecture.md. A stage takes the
// lock for what it decides and drops it for what it asks of the upstream or the device.

#include <algorithm>
#include <chrono>

#include "allocator/pool.hpp"
#include "allocator/pool_claim.hpp"

namespace weir {

/// A place among the requests that wait for memory. Only the first waits for the device; the others
/// sleep, and newcomers line up, so what is freed serves the first.
///
/// Every sleep here ends: the first waits for submitted work or for calls that are under way, and
/// leaves with a block or a failure. While it is first nobody else grows or takes, so what it can
/// wait for only shrinks: the frees of blocks that were handed out before.
class Pool::Line {
 public:
  explicit Line(Pool& pool) noexcept : pool_(pool) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    if (!joined_) return;
    Lock lock(pool_.mutex_);
    ++pool_.line_serving_;
    const News changes = pool_.news();
    lock.unlock();
    pool_.tell(changes);
  }

 private:
  friend class Pool;
  Pool& pool_;
  bool joined_ = false;
};

bool Pool::line_up(Line& line, Lock& lock) {
  if (line.joined_) return false;
  const std::uint64_t place = line_next_++;
  line.joined_ = true;
  bool slept = false;
  for (; line_serving_ != place; slept = true) sleep(lock);
  return slept;
}

Block* Pool::run_stages(Attempt& request) {
  Line line(*this);
  for (;;) {
    if (Block* block = take_own(request, line)) return block;
    if (Block* block = take_passed(request)) return block;
    if (Block* block = grow(request)) return block;
    if (await_growth(request, line)) continue;
    if (Block* block = release_and_grow(request)) return block;
    if (Block* block = hand_over(request)) return block;
    if (await_transit(line)) continue;
    if (!wait_for_device(request, line)) return nullptr;
    const Lock lock(mutex_);
    ++statistics_.retries;
  }
}

void Pool::sleep(Lock& lock) {
  ++sleepers_;
  changed_.wait(lock);
  --sleepers_;
}

void Pool::mark_allocated(Block& block, const Attempt& request) {
  const bool from_cache = block.state == BlockState::kCached;
  block.state = BlockState::kAllocated;
  block.home = request.stream;
  if (block.others != nullptr) block.others->clear();
  block.requested = request.asked;
  block.note_moved(++events_);
  block.set_label(request.label);
  statistics_.requested.add(request.asked);
  if (from_cache) statistics_.cached.remove(block.size);
  statistics_.allocated.add(block.size);
  statistics_.held.add(block.size);
  most_held_ = std::max(most_held_, statistics_.held.current);
}

Block* Pool::take_own(const Attempt& request, Line& line) {
  Lock lock(mutex_);
  if (line_next_ != line_serving_) (void)line_up(line, lock);
  if (options_.kind.value == PoolKind::kUnpooled) return nullptr;
  Block* block = index_->take_own(request.block, request.stream);
  if (block == nullptr) return nullptr;
  mark_allocated(*block, request);
  ++statistics_.hits;
  const News changes = news();
  lock.unlock();
  tell(changes);
  return block;
}

Block* Pool::take_passed(const Attempt& request) {
  if (options_.kind.value == PoolKind::kUnpooled) {
    trim();
    return nullptr;
  }
  poll();
  Lock lock(mutex_);
  // An own block may have stopped awaiting just now; it needs no point at all.
  Block* block = index_->take_own(request.block, request.stream);
  if (block == nullptr) block = index_->take_passed(request.block, request.stream);
  if (block == nullptr) return nullptr;
  mark_allocated(*block, request);
  ++statistics_.hits;
  const News changes = news();
  lock.unlock();
  tell(changes);
  return block;
}

Block* Pool::grow(Attempt& request) {
  if (paged_ != nullptr) return grow_pages(request);
  request.upstream_refused = false;  // what it said in an earlier round is old news
  std::vector<Segment> victims;
  Lock lock(mutex_);
  const Bytes taken = statistics_.reserved.current + growing_;
  request.growth_room = minus_or_zero(statistics_.budget, taken);
  if (request.block > request.growth_room) return nullptr;
  const Bytes segment = index_->segment_size(request.block, request.growth_room);
  const Bytes unused = index_->unused_by(taken + segment, most_held_);
  if (unused.count != 0) (void)index_->take_releasable(unused, victims);
  growing_ += segment;
  ++transits_;
  request.releases += victims.size();
  lock.unlock();
  release(victims);
  return grow_claimed(request, segment);
}

Block* Pool::grow_claimed(Attempt& request, Bytes segment) {
  const Claim claim(*this, segment);
  void* pointer = upstream_.allocate(segment);
  if (pointer == nullptr && segment > request.block) {
    segment = request.block;  // a part of the claim then stays unused
    pointer = upstream_.allocate(segment);
  }
  request.upstream_refused = pointer == nullptr;
  if (pointer == nullptr) return nullptr;
  Lock lock(mutex_);
  Block* block = nullptr;
  try {
    block = &index_->add({pointer, segment}, request.block);
  } catch (...) {
    lock.unlock();
    upstream_.deallocate(pointer, segment);
    throw;
  }
  statistics_.reserved.add(segment);
  statistics_.cached.add(segment - block->size);
  const std::uint64_t sequence = ++events_;
  mark_allocated(*block, request);
  ++statistics_.misses;
  lock.unlock();
  log_event(AllocationEvent::kGrow, sequence, pointer, segment);
  return block;
}

bool Pool::await_growth(const Attempt& request, Line& line) {
  Lock lock(mutex_);
  if (request.upstream_refused || growing_.count == 0 || request.block > statistics_.budget) {
    return false;
  }
  if (line_up(line, lock)) return true;
  if (growing_.count == 0) return false;
  const std::uint64_t before = transits_ended_;
  while (transits_ended_ == before) sleep(lock);
  return true;
}

Block* Pool::release_and_grow(Attempt& request) {
  if (paged_ != nullptr) return nullptr;  // growth took what can be had: pages move
  std::vector<Segment> victims;
  // Again while the upstream refuses: what was released may not be the piece that it lacked.
  for (;;) {
    Lock lock(mutex_);
    const Bytes taken = statistics_.reserved.current + growing_;
    request.growth_room = minus_or_zero(statistics_.budget, taken);
    request.releasable = index_->releasable();
    Bytes need = minus_or_zero(taken + request.block, statistics_.budget);
    if (need > request.releasable) return nullptr;  // it would not make room: keep the cache
    if (request.upstream_refused) {
      if (request.releasable.count == 0) return nullptr;
      need = std::max(need, request.block);
    }
    const Bytes released = index_->take_releasable(need, victims);
    const Bytes segment =
        index_->segment_size(request.block, minus_or_zero(statistics_.budget + released, taken));
    // The room is claimed before it is made, so that nobody else grows into it.
    growing_ += segment;
    ++transits_;
    request.releases += victims.size();
    lock.unlock();
    release(victims);
    if (Block* block = grow_claimed(request, segment)) return block;
  }
}

Block* Pool::hand_over(const Attempt& request) {
  Lock lock(mutex_);
  if (!running_out_.hand_over) return nullptr;
  Block* block = index_->take_unpassed(request.block);
  if (block == nullptr) return nullptr;
  const Point point = block->home_point();
  mark_allocated(*block, request);
  ++statistics_.handovers;
  const News changes = news();
  lock.unlock();
  tell(changes);
  try {
    progress_.make_wait(request.stream, point);
  } catch (...) {
    // Nothing holds the asking stream back, so the block must stay behind its old stream's point.
    lock.lock();
    block->home = point.stream;
    settle_freed(*block);
    --statistics_.handovers;
    const News undone = news();
    lock.unlock();
    tell(undone);
    throw;
  }
  return block;
}

bool Pool::await_transit(Line& line) {
  Lock lock(mutex_);
  if (transits_ == 0) return false;
  if (line_up(line, lock)) return true;
  if (transits_ == 0) return true;
  const std::uint64_t before = transits_ended_;
  while (transits_ended_ == before) sleep(lock);
  return true;
}

bool Pool::wait_for_device(Attempt& request, Line& line) {
  Lock lock(mutex_);
  request.hand_over_allowed = running_out_.hand_over;
  request.wait_allowed = running_out_.wait;
  if (request.block > statistics_.budget) return false;
  if (line_up(line, lock)) return true;
  // What another thread freed, gave back or found passed since release looked was not there to be
  // taken yet, and may not be outstanding any more.
  const Bytes taken = statistics_.reserved.current + growing_;
  const Bytes room = minus_or_zero(statistics_.budget, taken) + index_->releasable();
  if (room > request.growth_room + request.releasable) return true;
  const auto point = running_out_.wait ? index_->oldest_outstanding() : std::nullopt;
  if (!point) return transits_ != 0;
  ++statistics_.waits;
  ++request.waits;
  lock.unlock();
  const auto start = std::chrono::steady_clock::now();
  const bool reached = progress_.wait(*point, {});
  const auto waited = std::chrono::steady_clock::now() - start;
  lock.lock();
  statistics_.waited += waited;
  return reached;
}

}  // namespace weir
