// The stages of a request, in the order of docs/architecture.md. A stage decides under the lock,
// and releases it to call the upstream or the device.

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/pool.hpp"
#include "allocator/pool_kind.hpp"

namespace weir {
namespace {

/// Streams to ask before the pool grows. Any number of streams, even gone ones, may have waiting
/// blocks, and each request would ask all.
constexpr std::size_t kAskedFirst = 16;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

}  // namespace

/// A place in the line of requests that wait for memory. Only the first waits for the device; the
/// others sleep. New requests queue, so freed memory serves the first. A request that finds a block
/// of its own stream may pass (may_pass_by).
///
/// Every sleep ends. The first waits for submitted work or calls under way, so each of its rounds
/// through the stages ends. Others may pass it in kRoundsPassedBy rounds. Then nobody else grows or
/// takes memory, and only frees of blocks handed out before remain. So it leaves with a block or a
/// failure, and the next becomes first.
///
/// Passing fails no request that would be served: after each such hit the first still has room once
/// the device has passed all submitted work.
class Pool::Line {
 public:
  Line(Pool& pool, Bytes block) noexcept : pool_(pool), block_(block) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    if (!joined_) return;
    const PoolChange change(pool_.state_);
    (before_ != nullptr ? before_->after_ : pool_.line_first_) = after_;
    (after_ != nullptr ? after_->before_ : pool_.line_last_) = before_;
    if (before_ == nullptr) pool_.first_ = {};
    pool_.state_.wake = true;
  }

 private:
  friend class Pool;
  Pool& pool_;
  const Bytes block_;  ///< the requested block size
  Line* before_ = nullptr;
  Line* after_ = nullptr;
  bool joined_ = false;
  bool gave_up_ = false;  ///< stopped while asleep, so it is not first
};

/// A wait on the host of one request: for the device, or in the line.
struct Pool::HostWait {
  const TimelineSlice slice{};
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

Pool::HostWait Pool::begin_wait(Attempt& request) {
  ++state_.statistics.waits;
  ++request.waits;
  return {};
}

void Pool::end_wait(const HostWait& wait, Attempt& request) {
  const auto waited = std::chrono::steady_clock::now() - wait.start;
  state_.statistics.waited += waited;
  request.waited += waited;
  if (wait.slice.sink() == nullptr) return;
  wait.slice.write({.bytes = request.block.count,
                    .stream = request.stream.value,
                    .name = wait.slice.sink()->name(request.label),
                    .source = number(),
                    .device = state_.options.place.device,
                    .kind = TimelineKind::kPoolWait});
}

bool Pool::line_up(Line& line, Attempt& request, Lock& lock) {
  if (line.joined_) return false;
  line.before_ = std::exchange(line_last_, &line);
  (line.before_ != nullptr ? line.before_->after_ : line_first_) = &line;
  line.joined_ = true;
  const bool sleeps = line_first_ != &line;
  if (sleeps) {
    const NoCancel no_cancel;
    const HostWait wait = begin_wait(request);
    ++state_.sleepers;
    line.gave_up_ = !state_.changed.wait_until(
        lock, request.limit.stop, request.limit.until,
        [&]() WEIR_REQUIRES(state_.mutex) { return line_first_ == &line; });
    --state_.sleepers;
    end_wait(wait, request);
  }
  if (!line.gave_up_) first_ = {.block = line.block_, .rounds_left = kRoundsPassedBy};
  return sleeps;
}

Block* Pool::run_stages(Attempt& request) {
  Line line(*this, request.block);
  for (;;) {
    if (Block* block = take_own(request, line)) return block;
    if (line.gave_up_) return nullptr;
    if (!std::exchange(request.resumed, false)) {
      if (Block* block = take_passed(request, Asking::kFew)) return block;
      if (would_rather_hand_over(request)) {
        if (Block* block = hand_over(request)) return block;
      }
      if (Block* block = strategy_->grow(request)) return block;
      // The search may have polled more streams, and a release would give back a block that fits.
      if (!request.asked_all || request.upstream_refused) {
        if (Block* block = take_passed(request, Asking::kAll)) return block;
      }
      if (await_growth(request, line)) continue;
      if (Block* block = strategy_->make_room(request)) return block;
      if (request.at_once) return nullptr;
    }
    if (raise_for(request)) continue;
    if (Block* block = hand_over(request)) return block;
    if (await_transit(request, line)) continue;
    if (!wait_for_device(request, line)) return nullptr;
    const PoolChange change(state_);
    ++state_.statistics.retries;
  }
}

Block* Pool::take_own(Attempt& request, Line& line) {
  PoolChange change(state_);
  if (line.joined_) {
    // Only the first goes round. A request that gave up is not first.
    if (!line.gave_up_ && first_.rounds_left != 0) --first_.rounds_left;
  } else if (line_first_ != nullptr &&
             !may_pass_by(first_, kind_.hits_pass_by, request.block,
                          state_.statistics.allocated.current + state_.growing,
                          state_.statistics.budget)) {
    (void)line_up(line, request, change.lock());
  }
  if (line.gave_up_) return nullptr;
  Block* block = state_.index->take_own(request.block, request.stream);
  if (block == nullptr && line_first_ != nullptr && line_up(line, request, change.lock()) &&
      !line.gave_up_) {
    block = state_.index->take_own(request.block, request.stream);
  }
  if (block == nullptr) return nullptr;
  state_.hand_out(*block, request, TimelineServed::kOwn);
  ++state_.statistics.hits;
  return block;
}

bool Pool::would_rather_grow(const Attempt& request) const {
  const Lock lock(state_.mutex);
  const Bytes budget = state_.statistics.budget;
  return request.block <= minus_or_zero(budget, state_.taken()) &&
         !holds_much(state_.statistics.awaiting.current + request.block, budget);
}

bool Pool::would_rather_hand_over(const Attempt& request) const {
  const Lock lock(state_.mutex);
  const Bytes needed = std::max(state_.most_held, state_.statistics.held.current + request.block);
  const Bytes reserved = state_.taken() + request.block;
  return running_out_.before_growth && reserved > needed * kMostUnexplained &&
         holds_much(reserved, state_.statistics.budget);  // little is not worth a wait
}

Block* Pool::take_passed(Attempt& request, Asking asking) {
  request.asked_all = asking == Asking::kAll ? state_.poll(kAll)
                                             : state_.poll(kAskedFirst, would_rather_grow(request));
  const PoolChange change(state_);
  // An own block may have stopped awaiting just now; it needs no point.
  Block* block = state_.index->take_own(request.block, request.stream);
  if (block == nullptr) block = state_.index->take_passed(request.block, request.stream);
  request.looked = state_.cached_more;
  if (block == nullptr) return nullptr;
  state_.hand_out(*block, request, TimelineServed::kPassed);
  ++state_.statistics.hits;
  return block;
}

bool Pool::await_growth(Attempt& request, Line& line) {
  Lock lock(state_.mutex);
  if (request.upstream_refused || state_.growing.count == 0 ||
      request.block > state_.statistics.budget) {
    return false;
  }
  if (line_up(line, request, lock)) return true;
  if (state_.growing.count == 0) return false;
  const std::uint64_t before = state_.transits_ended;
  while (state_.transits_ended == before) state_.sleep(lock);
  return true;
}

// Ends: each time the budget has grown, and it has a limit.
bool Pool::raise_for(const Attempt& request) noexcept {
  BudgetSource* const source = source_.load(std::memory_order_relaxed);
  return source != nullptr && source->make_room_for(request.block);
}

Block* Pool::hand_over(Attempt& request) {
  PoolChange change(state_);
  if (!running_out_.hand_over || request.for_all) return nullptr;
  if (running_out_.wait && running_out_.wait_first && !request.waited_first) {
    const Block* found = state_.index->find_unpassed(request.block);
    if (found != nullptr) request.earlier = state_.index->enough_before(*found, request.block);
    if (request.earlier) return nullptr;
  }
  Block* block = state_.index->take_unpassed(request.block);
  if (block == nullptr) return nullptr;
  const Point point = block->home_point();
  FreeOwner& former = *block->owner;
  hold(former);
  try {
    state_.hand_out(*block, request, TimelineServed::kHandedOver);
  } catch (...) {
    let_go(former);
    throw;
  }
  ++state_.statistics.handovers;
  change.end();
  try {
    state_.progress.make_wait(request.stream, point);
  } catch (...) {
    // The requesting stream does not wait, so the block keeps its old stream's point.
    const PoolChange undoing(state_);
    give_to(*block, &former);
    let_go(former);
    block->home = point.stream;
    state_.settle_freed(*block);
    --state_.statistics.handovers;
    throw;
  }
  const PoolChange settling(state_);
  let_go(former);
  return block;
}

bool Pool::await_transit(Attempt& request, Line& line) {
  Lock lock(state_.mutex);
  if (state_.transits == 0) return false;
  if (line_up(line, request, lock)) return true;
  if (state_.transits == 0) return true;
  const std::uint64_t before = state_.transits_ended;
  while (state_.transits_ended == before) state_.sleep(lock);
  return true;
}

bool Pool::wait_for_device(Attempt& request, Line& line) {
  PoolChange change(state_);
  request.hand_over_allowed = running_out_.hand_over;
  request.wait_allowed = running_out_.wait;
  if (request.block > state_.statistics.budget) return false;
  if (line_up(line, request, change.lock())) return true;
  // Memory that another thread freed, released or found passed since make_room looked was not
  // available then, and may not be outstanding now. The same holds for memory that another thread
  // gave back to the upstream since it refused.
  const Bytes taken = state_.taken();
  const Bytes room = minus_or_zero(state_.statistics.budget, taken) + state_.index->releasable();
  if (room > request.growth_room + request.releasable) return true;
  const bool released = state_.statistics.releases != request.releases_before;
  if (request.upstream_refused && released) return true;
  const bool first = request.earlier.has_value();
  auto point = std::exchange(request.earlier, std::nullopt);
  if (first) {
    request.waited_first = true;  // once: pieces of memory may be enough and not fit
  } else if (running_out_.wait) {
    point = state_.index->oldest_outstanding();
  }
  // A freed block may be part of a segment, and then is no room.
  if (!point) return state_.transits != 0 || state_.cached_more != request.looked;
  const HostWait wait = begin_wait(request);
  change.end();
  const bool reached = state_.progress.wait(*point, request.limit);
  const PoolChange waiting(state_);
  end_wait(wait, request);
  return reached;
}

}  // namespace weir
