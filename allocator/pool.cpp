// What a program calls of a pool. In one file, long as it is: all of it changes the same books,
// under one lock. How a request is served in stages is in pool_stages.cpp.

#include "allocator/pool.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/thread_scratch.hpp"
#include "allocator/index/paged/paged_index.hpp"
#include "allocator/index/segment_index.hpp"
#include "allocator/index/size_class_index.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {
namespace {

Bytes budget_of(const PoolOptions& options, const Upstream& upstream) {
  const std::string name = "budget (" + options.budget.source + ")";
  const Bytes total = upstream.capacity();
  const Bytes asked = resolve_budget(options.budget.value, total, name);
  const Bytes fitted =
      fit_budget(asked, upstream.available(), total, name, options.budget.source == "default");
  if (fitted != asked) {
    log(LogLevel::kWarn, name + " lowered from " + format_bytes(asked) + " to what is free, " +
                             format_bytes(fitted));
  }
  return fitted;
}

std::unique_ptr<BlockIndex> index_of(const PoolOptions& options, Bytes budget, Upstream& upstream) {
  switch (options.kind.value) {
    case PoolKind::kBestFit:
      return std::make_unique<SegmentIndex>(options.segment.value, budget);
    case PoolKind::kPaged:
      if (PageSource* pages = upstream.pages()) {
        return std::make_unique<PagedIndex>(pages->page_size());
      }
      throw UsageError("pool (" + options.kind.source +
                       "): 'paged' needs memory that is mapped page by page, and this device has "
                       "none; allowed: best_fit, round, naive, unpooled");
    default:
      return std::make_unique<SizeClassIndex>(options.kind.value == PoolKind::kUnpooled);
  }
}

BlockInUse in_use(const Block& block) {
  return {
      .begin = block.pointer, .home = block.home, .size = block.size, .requested = block.requested};
}

}  // namespace

Pool::Resolved Pool::resolved(const Upstream& upstream, PoolOptions options) {
  options.validate();
  const Bytes budget = budget_of(options, upstream);
  return {.options = std::move(options), .budget = budget};
}

Pool::Pool(DeviceMemory memory, PoolOptions options)
    : Pool(resolved(memory.upstream, std::move(options)), memory) {
  begin_showing();
}

Pool::Pool(Resolved resolved, DeviceMemory memory)
    : upstream_(memory.upstream),
      progress_(memory.progress),
      options_(std::move(resolved.options)),
      log_(options_.open_log()),
      index_(index_of(options_, resolved.budget, upstream_)),
      paged_(dynamic_cast<PagedIndex*>(index_.get())) {
  const Lock lock(mutex_);
  statistics_.budget = resolved.budget;
  steady_ = steady_range(statistics_.budget, level_.level);
  if (log_ != nullptr) log_pool_ = log_->add_pool(statistics_.budget);
}

void Pool::begin_showing() {
  enlist();
  const Lock lock(mutex_);
  if (TimelineSink* sink = timeline_sink()) note_self(*sink);
}

Pool::~Pool() {
  leave();
  if (TimelineSink* sink = timeline_sink()) {
    const Lock lock(mutex_);
    sink->write({.sequence = ++noted_, .source = number(), .kind = TimelineKind::kPoolEnd});
  }
  // Blocks that were never freed may still be used by submitted work: wait for their streams too.
  std::vector<Point> points;
  {
    const Lock lock(mutex_);
    index_->for_each([&](const Block& block) {
      // Of a free block its points say all, and its streams may be gone, so that none could be
      // recorded now.
      const bool in_use = block.state == BlockState::kAllocated;
      const auto add = [&](Point point) {
        if (in_use) point.sequence = Block::kUnrecorded;
        if (point.sequence != 0) points.push_back(point);
      };
      add(block.home_point());
      for (const Point& point : block.other_points()) add(point);
    });
  }
  bool safe = true;
  for (Point& point : points) {
    try {
      if (point.sequence == Block::kUnrecorded) point = progress_.record(point.stream);
      if (!progress_.wait(point, {})) safe = false;
    } catch (...) {
      safe = false;  // the device may still write there: memory that is lost beats memory reused
    }
  }
  if (!safe) {
    log(LogLevel::kError,
        "a pool cannot learn that the device is done with its memory: kept for ever");
    return;
  }
  std::unique_ptr<BlockIndex> last;
  {
    const Lock lock(mutex_);
    last = std::move(index_);
  }
  if (paged_ != nullptr) {
    give_back_pages(*paged_);
    return;
  }
  last->for_each_segment(
      [&](Segment segment) { upstream_.deallocate(segment.pointer, segment.size); });
}

void* Pool::allocate(Bytes bytes, StreamId stream, std::string_view label) {
  Attempt attempt{.asked = bytes, .stream = stream, .label = label};
  void* pointer = serve(attempt);
  if (pointer == nullptr && bytes.count != 0) fail(attempt);
  return pointer;
}

void* Pool::try_allocate(Bytes bytes, StreamId stream, std::string_view label, Attempt& attempt) {
  attempt = {.asked = bytes, .stream = stream, .label = label, .stop = std::move(attempt.stop)};
  return serve(attempt);
}

void* Pool::serve(Attempt& attempt) {
  if (attempt.asked.count == 0) return nullptr;
  const auto size = block_size(attempt.asked);
  if (!size) return nullptr;
  attempt.block = *size;
  const Block* block = run_stages(attempt);
  if (block == nullptr) return nullptr;
  log_event(AllocationEvent::kAllocate, block->moved_at, block->pointer, attempt.asked,
            attempt.stream);
  return block->pointer;
}

void Pool::fail(const Attempt& attempt) {
  Lock lock(mutex_);
  ++statistics_.failures;
  const std::uint64_t sequence = ++events_;
  TimelineSink* const sink = timeline_sink();
  if (sink != nullptr) {
    note(*sink,
         {.bytes = attempt.block.count,
          .requested = attempt.asked.count,
          .stream = attempt.stream.value,
          .kind = TimelineKind::kFailure},
         attempt.label);
  }
  lock.unlock();
  log_event(AllocationEvent::kFailure, sequence, nullptr, attempt.asked, attempt.stream);
  const OutOfMemory error = out_of_memory(attempt);
  std::string text = error.what();
  const char* const page = sink != nullptr ? sink->note_failure() : nullptr;
  if (page != nullptr) text += std::string("\n  what led to it: ") + page;
  throw OutOfMemory(text, error.figures());
}

Freed Pool::deallocate(void* pointer, StreamId stream) {
  if (pointer == nullptr) return Freed::kCached;
  const auto freed = try_deallocate(pointer, stream);
  if (!freed) {
    throw UsageError("deallocate: the pointer is not allocated from this pool (freed twice?)");
  }
  return *freed;
}

std::optional<Freed> Pool::try_deallocate(void* pointer, StreamId stream) {
  Lock lock(mutex_);
  Block* block = index_->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  index_->add_use(*block, stream);
  index_->expect_free(*block);
  block->state = BlockState::kFreeing;  // from here to the next lock it is this thread's alone
  ++transits_;
  lock.unlock();

  const auto record = [&](StreamId id) {
    try {
      return progress_.record(id).sequence;
    } catch (...) {
      return Block::kUnrecorded;  // parked; poll() records it later
    }
  };
  block->home_sequence = record(block->home);
  for (Point& other : block->other_points()) other.sequence = record(other.stream);

  lock.lock();
  const Bytes requested = block->requested;
  const Freed freed = settle_freed(*block);
  const std::uint64_t sequence = events_;
  --transits_;
  ++transits_ended_;
  const News changes = news();
  lock.unlock();
  tell(changes);
  log_event(AllocationEvent::kFree, sequence, pointer, requested, stream);
  if (options_.kind.value == PoolKind::kUnpooled) {
    try {
      trim();
    } catch (const std::bad_alloc&) {
      // It is freed all the same; the next call gives back what this one could not.
    }
  }
  return freed;
}

Freed Pool::settle_freed(Block& block) noexcept {
  const Bytes size = block.size;
  statistics_.requested.remove(block.requested);
  statistics_.allocated.remove(size);
  block.note_moved(++events_);
  TimelineRecord record{.id = block.begin(),
                        .bytes = size.count,
                        .requested = block.requested.count,
                        .stream = block.home.value,
                        .kind = TimelineKind::kFree};
  // From here on the block may be a part of another.
  const bool awaits = index_->place_freed(block) == BlockState::kAwaiting;
  if (awaits) {
    statistics_.awaiting.add(size);
  } else {
    statistics_.held.remove(size);
    statistics_.cached.add(size);
  }
  if (TimelineSink* sink = timeline_sink()) {
    record.detail = awaits ? 1 : 0;
    note(*sink, record);
  }
  return awaits ? Freed::kAwaiting : Freed::kCached;
}

void Pool::record_use(void* pointer, StreamId stream) {
  if (pointer == nullptr) return;
  Lock lock(mutex_);
  Block* block = index_->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) {
    throw UsageError("record_use: the pointer is not allocated from this pool");
  }
  index_->add_use(*block, stream);
  const std::uint64_t sequence = ++events_;
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.id = block->begin(), .stream = stream.value, .kind = TimelineKind::kUse});
  }
  lock.unlock();
  log_event(AllocationEvent::kUse, sequence, pointer, {}, stream);
}

std::optional<Point> Pool::oldest_awaiting() const {
  const Lock lock(mutex_);
  return index_->oldest_awaiting();
}

std::optional<Point> Pool::oldest_outstanding() const {
  const Lock lock(mutex_);
  return index_->oldest_outstanding();
}

void Pool::poll() { (void)poll_some(std::numeric_limits<std::size_t>::max()); }

bool Pool::poll_some(std::size_t streams) {
  // Of the thread, so that a poll on the way of every batch allocates nothing.
  struct Scratch {
    std::vector<StreamId> pending;
    std::vector<StreamId> unrecorded;
  };
  auto& [pending, unrecorded] = thread_scratch<Scratch>();
  pending.clear();
  unrecorded.clear();
  Lock lock(mutex_);
  const bool all = index_->pending_streams() <= streams;
  index_->pending_streams(streams, pending, unrecorded);
  const std::uint64_t looked = events_;
  lock.unlock();
  for (const StreamId stream : unrecorded) {
    Point point;
    try {
      point = progress_.record(stream);
    } catch (...) {
      continue;  // still not to be had: the blocks stay parked, which is always safe
    }
    lock.lock();
    became_cached(index_->note_recorded(point, looked));
    lock.unlock();
  }
  for (const StreamId stream : pending) {
    const std::uint64_t passed = progress_.passed(stream);
    lock.lock();
    became_cached(index_->note_passed(stream, passed));
    lock.unlock();
  }
  if (pending.empty() && unrecorded.empty()) return all;
  lock.lock();
  const News changes = news();
  lock.unlock();
  tell(changes);
  return all;
}

void Pool::became_cached(Bytes bytes) {
  if (bytes.count == 0) return;
  statistics_.awaiting.remove(bytes);
  statistics_.held.remove(bytes);
  statistics_.cached.add(bytes);
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.bytes = bytes.count, .kind = TimelineKind::kSettled});
  }
}

Bytes Pool::trim(Bytes keep) {
  poll();
  if (paged_ != nullptr) return trim_pages(keep);
  std::vector<Segment> segments;
  Lock lock(mutex_);
  const Bytes sum =
      index_->take_releasable(minus_or_zero(statistics_.reserved.current, keep), segments);
  if (segments.empty()) return {};
  ++transits_;
  lock.unlock();
  release(segments);
  lock.lock();
  --transits_;
  ++transits_ended_;
  const News changes = news();
  lock.unlock();
  tell(changes);
  return sum;
}

std::optional<BlockInUse> Pool::find(const void* pointer) const {
  const Lock lock(mutex_);
  const Block* block = index_->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  return in_use(*block);
}

std::optional<BlockInUse> Pool::find_around(const void* address) const {
  const Lock lock(mutex_);
  const Block* block = index_->find_around(address);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  const auto into = reinterpret_cast<std::uintptr_t>(address) - block->begin();
  return into < block->requested.count ? std::optional(in_use(*block)) : std::nullopt;
}

std::optional<BlockInUse> Pool::give_away(void* pointer) {
  Lock lock(mutex_);
  Block* block = index_->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  const BlockInUse holding = in_use(*block);
  if (!index_->remove_allocated(*block)) return std::nullopt;
  statistics_.requested.remove(holding.requested);
  statistics_.allocated.remove(holding.size);
  statistics_.held.remove(holding.size);
  statistics_.cached.add(holding.size);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.id = address,
                 .bytes = holding.size.count,
                 .requested = holding.requested.count,
                 .stream = holding.home.value,
                 .kind = TimelineKind::kFree});
  }
  statistics_.cached.remove(holding.size);
  statistics_.reserved.remove(holding.size);
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.id = address, .bytes = holding.size.count, .kind = TimelineKind::kRelease});
  }
  const std::uint64_t sequence = ++events_;
  ++events_;
  const News changes = news();
  lock.unlock();
  tell(changes);
  log_event(AllocationEvent::kFree, sequence, pointer, holding.requested, holding.home);
  log_event(AllocationEvent::kRelease, sequence + 1, pointer, holding.size);
  return holding;
}

void Pool::release(std::vector<Segment>& segments) {
  if (segments.empty()) return;
  for (const Segment& segment : segments) upstream_.deallocate(segment.pointer, segment.size);
  Lock lock(mutex_);
  std::uint64_t sequence = events_;
  events_ += segments.size();
  for (const Segment& segment : segments) {
    statistics_.cached.remove(segment.size);
    statistics_.reserved.remove(segment.size);
    ++statistics_.releases;
    if (TimelineSink* sink = timeline_sink()) {
      note(*sink, {.id = reinterpret_cast<std::uintptr_t>(segment.pointer),
                   .bytes = segment.size.count,
                   .kind = TimelineKind::kRelease});
    }
  }
  lock.unlock();
  for (const Segment& segment : segments) {
    log_event(AllocationEvent::kRelease, ++sequence, segment.pointer, segment.size);
  }
  segments.clear();
}

Pressure Pool::pressure() const {
  const Lock lock(mutex_);
  return {level_.level, statistics_.held.current, statistics_.budget, level_.sequence,
          statistics_.awaiting.current};
}

Statistics Pool::statistics() const {
  const Lock lock(mutex_);
  return statistics_;
}

void Pool::reset_peaks() {
  const Lock lock(mutex_);
  for (Gauge* gauge : {&statistics_.requested, &statistics_.allocated, &statistics_.awaiting,
                       &statistics_.cached, &statistics_.reserved, &statistics_.held}) {
    gauge->reset_peak();
  }
}

Bytes Pool::largest_cached() const {
  const Lock lock(mutex_);
  return index_->largest_cached();
}

void Pool::set_limits(Bytes budget, RunningOut running_out) {
  (void)resolve_budget({.bytes = budget}, upstream_.capacity(), "budget");
  Lock lock(mutex_);
  statistics_.budget = budget;
  steady_ = steady_range(budget, level_.level);
  running_out_ = running_out;
  if (TimelineSink* sink = timeline_sink()) {
    note(*sink, {.bytes = budget.count, .kind = TimelineKind::kBudget});
  }
  const News changes = news();
  lock.unlock();
  tell(changes);
}

PoolLimits::PoolLimits(Pool& pool, Bytes budget, RunningOut running_out) : pool_(pool) {
  {
    const Lock lock(pool.mutex_);
    if (pool.limits_claimed_) {
      throw UsageError(
          "the pool serves a scheduler already, which sets its limits: end that one first, or give "
          "each a pool of its own");
    }
    pool.limits_claimed_ = true;
  }
  try {
    pool.set_limits(budget, running_out);
  } catch (...) {
    end();
    throw;
  }
}

void PoolLimits::end() noexcept {
  const Lock lock(pool_.mutex_);
  pool_.limits_claimed_ = false;
}

Bytes Pool::budget() const {
  const Lock lock(mutex_);
  return statistics_.budget;
}

}  // namespace weir
