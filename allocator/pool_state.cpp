#include "allocator/pool_state.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "allocator/base/calling_thread.hpp"

namespace weir {

PoolState::PoolState(DeviceMemory memory, PoolOptions pool_options, Bytes budget,
                     std::uint16_t source)
    : upstream(memory.upstream),
      progress(memory.progress),
      options(std::move(pool_options)),
      log(options.open_log()),
      number(source),
      pressure(budget) {
  statistics.budget = budget;
  if (log != nullptr) log_pool = log->add_pool(budget);
}

void PoolState::hand_out(Block& block, const Attempt& request, TimelineServed served) {
  const bool from_cache = block.state == BlockState::kCached;
  // A block that the device has passed belongs to every stream; take_own may find it, too.
  if (from_cache && served != TimelineServed::kHandedOver) {
    served = block.home == request.stream ? TimelineServed::kOwn : TimelineServed::kPassed;
  }
  try {
    index->hand_out(block, request.stream);
  } catch (...) {
    if (!from_cache) statistics.cached.add(block.size);
    index->put_back(block);
    ++cached_more;
    throw;
  }
  block.state = BlockState::kAllocated;
  block.requested = request.asked;
  block.note_moved(++events);
  block.set_label(request.label);
  statistics.requested.add(request.asked);
  if (from_cache) statistics.cached.remove(block.size);
  statistics.allocated.add(block.size);
  statistics.held.add(block.size);
  most_held = std::max(most_held, statistics.held.current);
  if (served == TimelineServed::kGrown) note_growth(request.stream);
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

void PoolState::note_growth(StreamId stream) {
  const Bytes queued = statistics.awaiting.current + index->queued_on_others(stream);
  statistics.queued_at_growth = std::max(statistics.queued_at_growth, queued);
  statistics.needed_at_growth =
      std::max(statistics.needed_at_growth, statistics.allocated.current + queued);
}

Freed PoolState::settle_freed(Block& block) noexcept {
  const Bytes size = block.size;
  statistics.requested.remove(block.requested);
  statistics.allocated.remove(size);
  block.note_moved(++events);
  TimelineRecord record{.id = block.begin(),
                        .bytes = size.count,
                        .requested = block.requested.count,
                        .stream = block.home.value,
                        .kind = TimelineKind::kFree};
  // The block may be merged from here on.
  const bool awaits = index->place_freed(block) == BlockState::kAwaiting;
  if (awaits) {
    statistics.awaiting.add(size);
  } else {
    statistics.held.remove(size);
    statistics.cached.add(size);
    ++cached_more;
  }
  if (TimelineSink* sink = timeline_sink()) {
    record.detail = awaits ? 1 : 0;
    note(*sink, record);
  }
  return awaits ? Freed::kAwaiting : Freed::kCached;
}

void PoolState::became_cached(Bytes bytes) {
  if (bytes.count == 0) return;
  statistics.awaiting.remove(bytes);
  statistics.held.remove(bytes);
  statistics.cached.add(bytes);
  ++cached_more;
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.bytes = bytes.count, .kind = TimelineKind::kSettled});
  }
}

void PoolState::set_budget(Bytes new_budget) {
  statistics.budget = new_budget;
  pressure.set_budget(new_budget);
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.bytes = new_budget.count, .kind = TimelineKind::kBudget});
  }
}

void PoolState::sleep(Lock& lock) {
  const NoCancel no_cancel;
  ++sleepers;
  changed.wait(lock);
  --sleepers;
}

bool PoolState::poll(std::size_t streams, bool cheaply) {
  if (is_settled()) return true;
  // Per thread, so that the poll of each batch allocates nothing.
  struct Scratch {
    std::vector<StreamId> pending;
    std::vector<StreamId> unrecorded;
  };
  auto& [pending, unrecorded] = thread_scratch<Scratch>();
  pending.clear();
  unrecorded.clear();
  Lock lock(mutex);
  bool all = index->pending_streams() <= streams;
  index->pending_streams(streams, pending, unrecorded);
  const std::uint64_t looked = events;
  lock.unlock();
  for (const StreamId stream : unrecorded) {
    Point point;
    try {
      point = progress.record(stream);
    } catch (...) {
      continue;  // still no point: the blocks stay parked, which is always safe
    }
    const PoolChange change(*this);
    became_cached(index->note_recorded(point, looked));
  }
  for (const StreamId stream : pending) {
    const auto known = cheaply ? progress.known_passed(stream)
                               : Progress::Known{.passed = progress.passed(stream)};
    all = all && known.is_all;
    const PoolChange change(*this);
    became_cached(index->note_passed(stream, known.passed));
  }
  return all;
}

void PoolState::note(TimelineSink& sink, TimelineRecord record, std::string_view label) {
  record.sequence = ++noted;
  record.allocated = statistics.allocated.current.count;
  record.awaiting = statistics.awaiting.current.count;
  // A new block counts as cached until it is handed out.
  record.cached = statistics.reserved.current.count - record.allocated - record.awaiting;
  record.source = number;
  record.device = options.place.device;
  record.name = sink.name(label);
  sink.write(record);
}

void PoolState::update_level() {
  if (!pressure.follow(statistics.held.current)) return;
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.bytes = statistics.held.current.count,
                 .kind = TimelineKind::kPressure,
                 .detail = static_cast<std::uint8_t>(pressure.level())});
  }
}

}  // namespace weir
