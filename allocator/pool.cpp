// The calls of a program on a pool, and its limits. See pool_stages.cpp for serving a request, and
// pool_report.cpp for what it tells.

#include "allocator/pool.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/budget.hpp"
#include "allocator/index/block_index.hpp"
#include "allocator/pool_kind.hpp"

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
    : state_(memory, std::move(resolved.options), resolved.budget, number()),
      kind_(kind_of_pool(state_.options.kind.value)),
      strategy_(kind_.make(state_)) {}

void Pool::begin_showing() {
  enlist();
  const Lock lock(state_.mutex);
  if (TimelineSink* sink = timeline_sink()) note_self(*sink);
}

Pool::~Pool() {
  leave();
  if (TimelineSink* sink = timeline_sink()) {
    const Lock lock(state_.mutex);
    sink->write({.sequence = ++state_.noted, .source = number(), .kind = TimelineKind::kPoolEnd});
  }
  // Submitted work may use blocks that were never freed: wait for their streams too.
  std::vector<Point> points;
  {
    const Lock lock(state_.mutex);
    state_.index->for_each([&](const Block& block) {
      // A free block has all its points. Its streams may be gone, so none could be recorded now.
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
      if (point.sequence == Block::kUnrecorded) point = state_.progress.record(point.stream);
      if (!state_.progress.wait(point, {})) safe = false;
    } catch (...) {
      safe = false;  // the device may still write there: losing memory is safer than reusing it
    }
  }
  if (!safe) {
    log(LogLevel::kError,
        "a pool cannot learn whether the device is done with its memory: the memory is leaked");
    return;
  }
  strategy_->release_all();
}

void* Pool::allocate(Bytes bytes, StreamId stream, std::string_view label) {
  Attempt attempt{.asked = bytes, .stream = stream, .label = label};
  void* pointer = serve(attempt);
  if (pointer == nullptr && bytes.count != 0) fail(attempt);
  return pointer;
}

void* Pool::try_allocate(Bytes bytes, StreamId stream, std::string_view label, Attempt& attempt) {
  if (!attempt.resumed) {
    attempt = {.asked = bytes,
               .stream = stream,
               .label = label,
               .limit = std::move(attempt.limit),
               .at_once = attempt.at_once,
               .for_all = attempt.for_all,
               .may_release = attempt.may_release};
  }
  return serve(attempt);
}

void* Pool::serve(Attempt& attempt) {
  if (attempt.asked.count == 0) return nullptr;
  const auto size = kind_.block_size(state_.options, attempt.asked);
  if (!size) return nullptr;
  attempt.block = *size;
  const Block* block = run_stages(attempt);
  if (block == nullptr) return nullptr;
  state_.log_event(AllocationEvent::kAllocate, block->moved_at, block->pointer, attempt.asked,
                   attempt.stream);
  return block->pointer;
}

void Pool::fail(const Attempt& attempt) {
  PoolChange change(state_);
  ++state_.statistics.failures;
  const std::uint64_t sequence = ++state_.events;
  TimelineSink* const sink = timeline_sink();
  if (sink != nullptr) {
    state_.note(*sink,
                {.bytes = attempt.block.count,
                 .requested = attempt.asked.count,
                 .stream = attempt.stream.value,
                 .kind = TimelineKind::kFailure},
                attempt.label);
  }
  change.end();
  state_.log_event(AllocationEvent::kFailure, sequence, nullptr, attempt.asked, attempt.stream);
  const OutOfMemory error = out_of_memory(attempt);
  std::string text = error.what();
  const char* const command = sink != nullptr ? sink->note_failure() : nullptr;
  if (command != nullptr) text += std::string("\n  what led to it: ") + command;
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
  Lock marking(state_.mutex);  // no figure changes
  Block* block = state_.index->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  state_.index->add_use(*block, stream);
  state_.index->expect_free(*block);
  block->state = BlockState::kFreeing;  // until the next lock only this thread uses it
  state_.begin_transit();
  marking.unlock();

  const auto record = [&](StreamId id) {
    try {
      return state_.progress.record(id).sequence;
    } catch (...) {
      return Block::kUnrecorded;  // parked; poll() records the point later
    }
  };
  block->home_sequence = record(block->home);
  for (Point& other : block->other_points()) other.sequence = record(other.stream);

  PoolChange change(state_);
  const Bytes requested = block->requested;
  const Freed freed = state_.settle_freed(*block);
  const std::uint64_t sequence = state_.events;
  state_.end_transit();
  change.end();
  state_.log_event(AllocationEvent::kFree, sequence, pointer, requested, stream);
  strategy_->after_free();
  return freed;
}

void Pool::record_use(void* pointer, StreamId stream) {
  if (pointer == nullptr) return;
  PoolChange change(state_);
  Block* block = state_.index->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) {
    throw UsageError("record_use: the pointer is not allocated from this pool");
  }
  state_.index->add_use(*block, stream);
  const std::uint64_t sequence = ++state_.events;
  if (TimelineSink* sink = timeline_sink()) {
    state_.note(*sink, {.id = block->begin(), .stream = stream.value, .kind = TimelineKind::kUse});
  }
  change.end();
  state_.log_event(AllocationEvent::kUse, sequence, pointer, {}, stream);
}

std::optional<Point> Pool::oldest_awaiting() const {
  const Lock lock(state_.mutex);
  return state_.index->oldest_awaiting();
}

std::optional<Point> Pool::oldest_outstanding() const {
  const Lock lock(state_.mutex);
  return state_.index->oldest_outstanding();
}

void Pool::poll() { (void)state_.poll(std::numeric_limits<std::size_t>::max()); }

Bytes Pool::releasable() const { return strategy_->releasable(); }

Bytes Pool::trim(Bytes keep, bool may_release) { return strategy_->trim(keep, may_release); }

std::optional<BlockInUse> Pool::find(const void* pointer) const {
  const Lock lock(state_.mutex);
  const Block* block = state_.index->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  return in_use(*block);
}

std::optional<BlockInUse> Pool::find_around(const void* address) const {
  const Lock lock(state_.mutex);
  const Block* block = state_.index->find_around(address);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  const auto into = reinterpret_cast<std::uintptr_t>(address) - block->begin();
  return into < block->requested.count ? std::optional(in_use(*block)) : std::nullopt;
}

std::optional<BlockInUse> Pool::disown(void* pointer) {
  PoolChange change(state_);
  Block* block = state_.index->find(pointer);
  if (block == nullptr || block->state != BlockState::kAllocated) return std::nullopt;
  const BlockInUse holding = in_use(*block);
  if (!state_.index->remove_allocated(*block)) return std::nullopt;
  state_.statistics.requested.remove(holding.requested);
  state_.statistics.allocated.remove(holding.size);
  state_.statistics.held.remove(holding.size);
  state_.statistics.cached.add(holding.size);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (TimelineSink* sink = timeline_sink()) {
    state_.note(*sink, {.id = address,
                        .bytes = holding.size.count,
                        .requested = holding.requested.count,
                        .stream = holding.home.value,
                        .kind = TimelineKind::kFree});
  }
  state_.statistics.cached.remove(holding.size);
  state_.statistics.reserved.remove(holding.size);
  if (TimelineSink* sink = timeline_sink()) {
    state_.note(*sink,
                {.id = address, .bytes = holding.size.count, .kind = TimelineKind::kRelease});
  }
  const std::uint64_t sequence = ++state_.events;
  ++state_.events;
  change.end();
  state_.log_event(AllocationEvent::kFree, sequence, pointer, holding.requested, holding.home);
  state_.log_event(AllocationEvent::kRelease, sequence + 1, pointer, holding.size);
  return holding;
}

Pressure Pool::pressure() const {
  const Lock lock(state_.mutex);
  return {.level = state_.pressure.level(),
          .held = state_.statistics.held.current,
          .budget = state_.statistics.budget,
          .awaiting = state_.statistics.awaiting.current,
          .cached = state_.statistics.cached.current,
          .number = state_.changes};
}

Statistics Pool::statistics() const {
  const Lock lock(state_.mutex);
  Statistics now = state_.statistics;
  now.pressure = state_.pressure.times(PressureGauge::Clock::now());
  return now;
}

void Pool::reset_peaks() {
  const PoolChange change(state_);
  for (Gauge Statistics::*gauge : kAllGauges) (state_.statistics.*gauge).reset_peak();
}

Bytes Pool::largest_cached() const {
  const Lock lock(state_.mutex);
  return state_.index->largest_cached();
}

void Pool::set_limits(Bytes budget, RunningOut running_out) {
  (void)resolve_budget({.bytes = budget}, state_.upstream.capacity(), "budget");
  const PoolChange change(state_);
  running_out_ = running_out;
  state_.set_budget(budget);
}

void Pool::raise_budget(Bytes budget) noexcept {
  const PoolChange change(state_);
  const Bytes most = std::min(budget, state_.upstream.capacity());
  if (most > state_.statistics.budget) state_.set_budget(most);
}

void Pool::lower_budget(Bytes budget) noexcept {
  const PoolChange change(state_);
  if (budget < state_.statistics.budget) state_.set_budget(budget);
}

bool Pool::raise_budget_to(Bytes budget) noexcept {
  BudgetSource* const source = source_.load(std::memory_order_relaxed);
  return source != nullptr && source->raise_to(budget);
}

Bytes Pool::taken() const {
  const Lock lock(state_.mutex);
  return state_.taken();
}

PoolLimits::PoolLimits(Pool& pool, Bytes budget, RunningOut running_out) : pool_(pool) {
  {
    const Lock lock(pool.state_.mutex);
    if (pool.limits_claimed_) {
      throw UsageError(
          "the pool already serves a scheduler, which sets its limits: destroy that scheduler "
          "first, or give each scheduler its own pool");
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
  const Lock lock(pool_.state_.mutex);
  pool_.limits_claimed_ = false;
}

Bytes Pool::budget() const {
  const Lock lock(state_.mutex);
  return state_.statistics.budget;
}

}  // namespace weir
