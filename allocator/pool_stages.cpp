// The stages that a request goes through, in the order of docs/architecture.md. A stage takes the
// lock for what it decides and drops it for what it asks of the upstream or the device.

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

#include "allocator/base/no_cancel.hpp"
#include "allocator/pool.hpp"
#include "allocator/pool_claim.hpp"

namespace weir {
namespace {

/// So many streams are asked before the pool grows. Of those that something waits for there can be
/// any number, also of streams that are gone, and each request would ask them all.
constexpr std::size_t kAskedFirst = 16;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

}  // namespace

/// A place among the requests that wait for memory. Only the first waits for the device; the others
/// sleep. Newcomers line up, so what is freed serves the first; but who finds a block of its own
/// stream may pass by (pool_line.hpp).
///
/// Every sleep here ends. The first waits for submitted work or for calls that are under way, so
/// each of its rounds through the stages ends. In kRoundsPassedBy of them others may pass it by.
/// After these nobody else grows or takes, so what it can wait for only shrinks: the frees of
/// blocks that were handed out before. So it leaves, with a block or a failure, and the next is
/// first.
///
/// Passing by lets no request fail that would be served: after each such hit the first still has
/// room for its block once the device has passed all that is submitted.
class Pool::Line {
 public:
  Line(Pool& pool, Bytes block) noexcept : pool_(pool), block_(block) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    if (!joined_) return;
    Lock lock(pool_.mutex_);
    (before_ != nullptr ? before_->after_ : pool_.line_first_) = after_;
    (after_ != nullptr ? after_->before_ : pool_.line_last_) = before_;
    if (before_ == nullptr) pool_.first_ = {};
    const News changes = pool_.news();
    lock.unlock();
    pool_.tell(changes);
  }

 private:
  friend class Pool;
  Pool& pool_;
  const Bytes block_;  ///< that is asked for
  Line* before_ = nullptr;
  Line* after_ = nullptr;
  bool joined_ = false;
  bool gave_up_ = false;  ///< its request was stopped in its sleep: it is not first
};

bool Pool::line_up(Line& line, const std::stop_token& stop, Lock& lock) {
  if (line.joined_) return false;
  line.before_ = std::exchange(line_last_, &line);
  (line.before_ != nullptr ? line.before_->after_ : line_first_) = &line;
  line.joined_ = true;
  const bool sleeps = line_first_ != &line;
  if (sleeps) {
    const NoCancel no_cancel;
    ++sleepers_;
    line.gave_up_ =
        !changed_.wait(lock, stop, [&]() WEIR_REQUIRES(mutex_) { return line_first_ == &line; });
    --sleepers_;
  }
  if (!line.gave_up_) first_ = {.block = line.block_, .rounds_left = kRoundsPassedBy};
  return sleeps;
}

Block* Pool::run_stages(Attempt& request) {
  Line line(*this, request.block);
  for (;;) {
    if (Block* block = take_own(request, line)) return block;
    if (line.gave_up_) return nullptr;
    if (Block* block = take_passed(request, kAskedFirst)) return block;
    if (Block* block = grow(request)) return block;
    // Who looked for room may have learned more, and a release would give back what fits.
    if (!request.asked_all || request.upstream_refused) {
      if (Block* block = take_passed(request, kAll)) return block;
    }
    if (await_growth(request, line)) continue;
    if (Block* block = release_and_grow(request)) return block;
    if (Block* block = hand_over(request)) return block;
    if (await_transit(request, line)) continue;
    if (!wait_for_device(request, line)) return nullptr;
    const Lock lock(mutex_);
    ++statistics_.retries;
  }
}

void Pool::sleep(Lock& lock) {
  const NoCancel no_cancel;
  ++sleepers_;
  changed_.wait(lock);
  --sleepers_;
}

void Pool::hand_out(Block& block, const Attempt& request, TimelineServed served) {
  const bool from_cache = block.state == BlockState::kCached;
  // A block that the device has passed belongs to every stream: take_own may find it, too.
  if (from_cache && served != TimelineServed::kHandedOver) {
    served = block.home == request.stream ? TimelineServed::kOwn : TimelineServed::kPassed;
  }
  try {
    index_->hand_out(block, request.stream);
  } catch (...) {
    if (!from_cache) statistics_.cached.add(block.size);
    index_->put_back(block);
    throw;
  }
  block.state = BlockState::kAllocated;
  block.requested = request.asked;
  block.note_moved(++events_);
  block.set_label(request.label);
  statistics_.requested.add(request.asked);
  if (from_cache) statistics_.cached.remove(block.size);
  statistics_.allocated.add(block.size);
  statistics_.held.add(block.size);
  most_held_ = std::max(most_held_, statistics_.held.current);
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink,
         {.id = block.begin(),
          .bytes = block.size.count,
          .requested = request.asked.count,
          .stream = request.stream.value,
          .kind = TimelineKind::kAllocate,
          .detail = static_cast<std::uint8_t>(served)},
         request.label);
  }
}

Block* Pool::take_own(const Attempt& request, Line& line) {
  Lock lock(mutex_);
  const PoolKind kind = options_.kind.value;
  if (line.joined_) {
    // Of its own: who goes round is first. One that gave up is not.
    if (!line.gave_up_ && first_.rounds_left != 0) --first_.rounds_left;
  } else if (line_first_ != nullptr &&
             !may_pass_by(first_, kind, request.block, statistics_.allocated.current + growing_,
                          statistics_.budget)) {
    (void)line_up(line, request.stop, lock);
  }
  if (line.gave_up_ || kind == PoolKind::kUnpooled) return nullptr;
  Block* block = index_->take_own(request.block, request.stream);
  if (block == nullptr && line_first_ != nullptr && line_up(line, request.stop, lock) &&
      !line.gave_up_) {
    block = index_->take_own(request.block, request.stream);
  }
  if (block == nullptr) return nullptr;
  hand_out(*block, request, TimelineServed::kOwn);
  ++statistics_.hits;
  const News changes = news();
  lock.unlock();
  tell(changes);
  return block;
}

Block* Pool::take_passed(Attempt& request, std::size_t streams) {
  if (options_.kind.value == PoolKind::kUnpooled) {
    trim();
    return nullptr;
  }
  request.asked_all = poll_some(streams);
  Lock lock(mutex_);
  // An own block may have stopped awaiting just now; it needs no point at all.
  Block* block = index_->take_own(request.block, request.stream);
  if (block == nullptr) block = index_->take_passed(request.block, request.stream);
  if (block == nullptr) return nullptr;
  hand_out(*block, request, TimelineServed::kPassed);
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
  const Bytes room = options_.segment_room(request.growth_room, statistics_.budget);
  const Bytes segment = index_->segment_size(request.block, room);
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
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.id = reinterpret_cast<std::uintptr_t>(pointer),
                 .bytes = segment.count,
                 .kind = TimelineKind::kReserve});
  }
  std::exception_ptr fault;
  try {
    hand_out(*block, request, TimelineServed::kGrown);
    ++statistics_.misses;
  } catch (...) {
    fault = std::current_exception();
  }
  lock.unlock();
  log_event(AllocationEvent::kGrow, sequence, pointer, segment);
  if (fault != nullptr) std::rethrow_exception(fault);
  return block;
}

bool Pool::await_growth(const Attempt& request, Line& line) {
  Lock lock(mutex_);
  if (request.upstream_refused || growing_.count == 0 || request.block > statistics_.budget) {
    return false;
  }
  if (line_up(line, request.stop, lock)) return true;
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
    const Bytes room = options_.segment_room(minus_or_zero(statistics_.budget + released, taken),
                                             statistics_.budget);
    const Bytes segment = index_->segment_size(request.block, room);
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
  FreeOwner& former = *block->owner;
  hold(former);
  try {
    hand_out(*block, request, TimelineServed::kHandedOver);
  } catch (...) {
    let_go(former);
    throw;
  }
  ++statistics_.handovers;
  const News changes = news();
  lock.unlock();
  tell(changes);
  try {
    progress_.make_wait(request.stream, point);
  } catch (...) {
    // Nothing holds the asking stream back, so the block must stay behind its old stream's point.
    lock.lock();
    give_to(*block, &former);
    let_go(former);
    block->home = point.stream;
    settle_freed(*block);
    --statistics_.handovers;
    const News undone = news();
    lock.unlock();
    tell(undone);
    throw;
  }
  lock.lock();
  let_go(former);
  return block;
}

bool Pool::await_transit(const Attempt& request, Line& line) {
  Lock lock(mutex_);
  if (transits_ == 0) return false;
  if (line_up(line, request.stop, lock)) return true;
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
  if (line_up(line, request.stop, lock)) return true;
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
  const TimelineSlice slice;
  const auto start = std::chrono::steady_clock::now();
  const bool reached = progress_.wait(*point, request.stop);
  const auto waited = std::chrono::steady_clock::now() - start;
  if (slice.sink() != nullptr) {
    slice.write({.bytes = request.block.count,
                 .stream = request.stream.value,
                 .name = slice.sink()->name(request.label),
                 .source = number(),
                 .device = options_.place.device,
                 .kind = TimelineKind::kPoolWait});
  }
  lock.lock();
  statistics_.waited += waited;
  return reached;
}

}  // namespace weir
