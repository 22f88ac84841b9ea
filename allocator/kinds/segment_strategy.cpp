#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <string>

#include "allocator/base/bytes.hpp"
#include "allocator/kinds/strategies.hpp"

namespace weir {

Block* SegmentStrategy::grow(Attempt& request) {
  request.upstream_refused = false;  // ignore an earlier round's result
  std::vector<Segment> victims;
  std::optional<bool> may_release;  // empty until asked, without the lock
  for (;;) {
    PoolChange change(state_);
    const Bytes taken = state_.taken();
    const Bytes budget = state_.statistics.budget;
    request.growth_room = minus_or_zero(budget, taken);
    if (request.block > request.growth_room) return nullptr;
    const Bytes room = state_.options.segment_room(request.growth_room, budget);
    const Bytes segment = index_->segment_size(request.block, room);
    const Bytes unused = index_->unused_by(taken + segment, state_.most_held);
    if (unused.count != 0 && !may_release) {
      change.end();
      may_release = request.may_release || state_.upstream.may_release();
      continue;
    }
    if (unused.count != 0 && *may_release) (void)take_releasable(unused, victims);
    state_.growing += segment;
    state_.begin_transit();
    request.releases += victims.size();
    request.releases_before = state_.statistics.releases + victims.size();
    change.end();
    release(victims);
    return grow_claimed(request, segment);
  }
}

Block* SegmentStrategy::make_room(Attempt& request) {
  std::vector<Segment> victims;
  bool asked = false;  // whether memory may be released, without the lock
  request.busy = false;
  // Repeat while the upstream refuses: it may lack another segment than those released.
  for (;;) {
    PoolChange change(state_);
    const Bytes taken = state_.taken();
    const Bytes budget = state_.statistics.budget;
    request.growth_room = minus_or_zero(budget, taken);
    request.releasable = index_->releasable();
    Bytes need = minus_or_zero(taken + request.block, budget);
    if (need > request.releasable) return nullptr;  // releasing would not suffice: keep the cache
    if (request.upstream_refused) {
      if (request.releasable.count == 0) return nullptr;
      need = std::max(need, request.block);
    }
    if (need.count != 0 && !asked) {
      change.end();
      asked = true;
      request.busy = !request.may_release && !state_.upstream.may_release();
      if (request.busy) return nullptr;
      continue;
    }
    const Bytes released = take_releasable(need, victims);
    const Bytes room = state_.options.segment_room(minus_or_zero(budget + released, taken), budget);
    const Bytes segment = index_->segment_size(request.block, room);
    // Claim the room before releasing: no other thread may grow into it.
    state_.growing += segment;
    state_.begin_transit();
    request.releases += victims.size();
    request.releases_before = state_.statistics.releases + victims.size();
    change.end();
    release(victims);
    if (Block* block = grow_claimed(request, segment)) return block;
  }
}

StageReport SegmentStrategy::room_found(const Attempt& request) const {
  return {.stage = "release",
          .found = format_bytes(request.releasable) + " cached could be released, " +
                   std::to_string(request.releases) + " segments were released" +
                   (request.busy ? ": the device was busy, for which a release may wait" : "")};
}

Block* SegmentStrategy::grow_claimed(Attempt& request, Bytes segment) {
  const PoolClaim claim(state_, segment);
  Upstream& upstream = state_.upstream;
  void* pointer = upstream.allocate(segment);
  if (pointer == nullptr && segment > request.block) {
    segment = request.block;  // leaves a part of the claim unused
    pointer = upstream.allocate(segment);
  }
  request.upstream_refused = pointer == nullptr;
  if (pointer == nullptr) return nullptr;
  PoolChange change(state_);
  Block* block = nullptr;
  try {
    block = &index_->add({pointer, segment}, request.block);
  } catch (...) {
    change.end();
    upstream.begin_release();
    upstream.deallocate(pointer, segment);
    upstream.end_release();
    throw;
  }
  state_.statistics.reserved.add(segment);
  state_.statistics.cached.add(segment - block->size);
  if (segment != block->size) ++state_.cached_more;
  const std::uint64_t sequence = ++state_.events;
  if (TimelineSink* sink = timeline_sink()) {
    state_.note(*sink, {.id = reinterpret_cast<std::uintptr_t>(pointer),
                        .bytes = segment.count,
                        .kind = TimelineKind::kReserve});
  }
  std::exception_ptr fault;
  try {
    state_.hand_out(*block, request, TimelineServed::kGrown);
    ++state_.statistics.misses;
  } catch (...) {
    fault = std::current_exception();
  }
  change.end();
  state_.log_event(AllocationEvent::kGrow, sequence, pointer, segment);
  if (fault != nullptr) std::rethrow_exception(fault);
  return block;
}

Bytes SegmentStrategy::take_releasable(Bytes need, std::vector<Segment>& taken) {
  const Bytes sum = index_->take_releasable(need, taken);
  // Before others see that the pool has them no more.
  if (!taken.empty()) state_.upstream.begin_release();
  return sum;
}

void SegmentStrategy::release(std::vector<Segment>& segments) {
  if (segments.empty()) return;
  for (const Segment& segment : segments) {
    state_.upstream.deallocate(segment.pointer, segment.size);
  }
  state_.upstream.end_release();
  PoolChange change(state_);
  std::uint64_t sequence = state_.events;
  state_.events += segments.size();
  for (const Segment& segment : segments) {
    state_.statistics.cached.remove(segment.size);
    state_.statistics.reserved.remove(segment.size);
    ++state_.statistics.releases;
    if (TimelineSink* sink = timeline_sink()) {
      state_.note(*sink, {.id = reinterpret_cast<std::uintptr_t>(segment.pointer),
                          .bytes = segment.size.count,
                          .kind = TimelineKind::kRelease});
    }
  }
  change.end();
  for (const Segment& segment : segments) {
    state_.log_event(AllocationEvent::kRelease, ++sequence, segment.pointer, segment.size);
  }
  segments.clear();
}

Bytes SegmentStrategy::releasable() const {
  const Lock lock(state_.mutex);
  return index_->releasable();
}

Bytes SegmentStrategy::trim(Bytes keep, bool may_release) {
  (void)state_.poll(std::numeric_limits<std::size_t>::max());
  if (releasable().count == 0) return {};
  if (!may_release && !state_.upstream.may_release()) return {};
  std::vector<Segment> segments;
  PoolChange taking(state_);
  const Bytes sum =
      take_releasable(minus_or_zero(state_.statistics.reserved.current, keep), segments);
  if (segments.empty()) return {};
  state_.begin_transit();
  taking.end();
  release(segments);
  const PoolChange given(state_);
  state_.end_transit();
  return sum;
}

void SegmentStrategy::release_all() WEIR_NO_THREAD_SAFETY_ANALYSIS {
  // No other thread uses the pool any more; no lock during calls of the upstream.
  state_.upstream.begin_release();
  index_->for_each_segment(
      [this](Segment segment) { state_.upstream.deallocate(segment.pointer, segment.size); });
  state_.upstream.end_release();
}

}  // namespace weir
