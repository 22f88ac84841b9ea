#pragma once

// A pool's state under its lock, with its accounting. Used by the stages of a request
// (pool_stages.cpp) and the strategy (pool_kind.hpp). Only a PoolChange changes it.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "allocator/attempt.hpp"
#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/pressure.hpp"
#include "allocator/index/block_index.hpp"
#include "allocator/log/allocation_log.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/pool_options.hpp"
#include "allocator/progress/progress.hpp"
#include "allocator/statistics.hpp"
#include "allocator/timeline/sink.hpp"

namespace weir {

// Who may take a block while others wait for memory. Pure; Pool::take_own applies it.

/// Rounds through the stages in which others may pass the first in line.
inline constexpr std::uint64_t kRoundsPassedBy = 16;

/// The waiting request that is first in line.
struct FirstInLine {
  Bytes block;                    ///< the size it waits for
  std::uint64_t rounds_left = 0;  ///< rounds in which others may still pass
};

/// Returns whether a request may take a cached block of its own stream before `first` is served.
/// `live` counts allocated bytes and growths under way. It may if the device alone can still make
/// room for the first: once all work is passed, everything not live is room. This needs blocks that
/// are whole segments. In other kinds the block may be part of what the first needs, so nobody
/// passes (`hits_pass_by` in pool_kind.hpp).
[[nodiscard]] constexpr bool may_pass_by(const FirstInLine& first, bool hits_pass_by, Bytes block,
                                         Bytes live, Bytes budget) noexcept {
  return hits_pass_by && first.rounds_left != 0 &&
         first.block <= minus_or_zero(budget, live + block);
}

/// Where a freed block went.
enum class Freed {
  kCached,    ///< can be reused
  kAwaiting,  ///< reserved until the device has passed its uses
};

struct PoolState {
  /// `source` is the pool's number in timelines.
  PoolState(DeviceMemory memory, PoolOptions pool_options, Bytes budget, std::uint16_t source);
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;
  ~PoolState() = default;

  /// Hands out a new or cached block. If it throws, the block is cached.
  void hand_out(Block& block, const Attempt& request, TimelineServed served) WEIR_REQUIRES(mutex);
  /// Notes what a request on `stream` could not have, so that the pool grew for it.
  void note_growth(StreamId stream) WEIR_REQUIRES(mutex);
  /// Counts a freed block, whose points are set, as awaiting or cached. It may be merged
  /// afterwards.
  Freed settle_freed(Block& block) noexcept WEIR_REQUIRES(mutex);
  /// Counts `bytes` of blocks that the index moved from awaiting to cached.
  void became_cached(Bytes bytes) WEIR_REQUIRES(mutex);
  void set_budget(Bytes new_budget) WEIR_REQUIRES(mutex);
  /// Returns the budget in use: reserved bytes and growths under way.
  [[nodiscard]] Bytes taken() const WEIR_REQUIRES(mutex) {
    return statistics.reserved.current + growing;
  }

  /// Begins a transit: a free, release or growth leaves the lock between its two halves.
  void begin_transit() WEIR_REQUIRES(mutex) { ++transits; }
  /// Ends the transit. The end of the change wakes the sleepers.
  void end_transit() WEIR_REQUIRES(mutex) {
    --transits;
    ++transits_ended;
    wake = true;
  }
  /// Sleeps until a transit ends or the line moves.
  void sleep(Lock& lock) WEIR_REQUIRES(mutex);

  /// Asks up to `streams` streams how far they have come; if `cheaply`, only where the answer is
  /// cheap. Returns true if none is left.
  bool poll(std::size_t streams, bool cheaply = false) WEIR_EXCLUDES(mutex);

  /// Whether no stream has to be asked. A free that the device has passed work behind is seen by
  /// whoever saw that.
  [[nodiscard]] bool is_settled() const noexcept WEIR_NO_THREAD_SAFETY_ANALYSIS {
    return index->pending_streams() == 0;
  }

  void note(TimelineSink& sink, TimelineRecord record, std::string_view label = {})
      WEIR_REQUIRES(mutex);
  /// Writes to the allocation log, if any. `sequence` was taken under the lock and orders events.
  void log_event(AllocationEvent event, std::uint64_t sequence, const void* address, Bytes bytes,
                 StreamId stream = {}) WEIR_EXCLUDES(mutex) {
    if (log == nullptr) return;
    log->write({.sequence = sequence,
                .address = reinterpret_cast<std::uintptr_t>(address),
                .bytes = bytes.count,
                .stream = stream.value,
                .pool = log_pool,
                .event = event});
  }

  Upstream& upstream;
  Progress& progress;
  const PoolOptions options;
  AllocationLog* const log;
  const std::uint16_t number;  ///< in timelines
  std::uint16_t log_pool = 0;  ///< in the log

  mutable Mutex mutex{LockRank::kPool};
  BlockIndex* index WEIR_PT_GUARDED_BY(mutex) = nullptr;  ///< set and owned by the strategy
  Statistics statistics WEIR_GUARDED_BY(mutex);
  /// The levels of `statistics` for readers without the lock, as of the last change.
  std::array<std::atomic<std::uint64_t>, kAllGauges.size()> levels{};
  /// Counts events from 2 (1 is the log's start of the pool). Orders frees and log entries.
  std::uint64_t events WEIR_GUARDED_BY(mutex) = 1;
  std::uint64_t noted WEIR_GUARDED_BY(mutex) = 0;  ///< records written, in this order
  Bytes most_held WEIR_GUARDED_BY(mutex);          ///< never reset, unlike the peak in `statistics`
  /// How often more came into the cache. A request that fails looks again if it grew.
  std::uint64_t cached_more WEIR_GUARDED_BY(mutex) = 0;
  /// Budget claimed by growths under way.
  Bytes growing WEIR_GUARDED_BY(mutex);
  /// Transits under way. Each ends without waiting.
  std::uint64_t transits WEIR_GUARDED_BY(mutex) = 0;
  std::uint64_t transits_ended WEIR_GUARDED_BY(mutex) = 0;

  PressureGauge pressure WEIR_GUARDED_BY(mutex);
  std::uint64_t changes WEIR_GUARDED_BY(mutex) = 0;  ///< Pressure::number
  bool wake WEIR_GUARDED_BY(mutex) = false;          ///< a transit ended, or the line moved
  std::uint64_t sleepers WEIR_GUARDED_BY(mutex) = 0;
  std::condition_variable_any changed;  ///< notified at the end of a change that set `wake`

  /// Updates the level. Returns whether to wake the sleepers. Inline, because the three shortest
  /// paths end in it.
  [[nodiscard]] bool conclude() WEIR_REQUIRES(mutex) {
    ++changes;
    if (!pressure.steady().contains(statistics.held.current)) update_level();
    publish(std::make_index_sequence<kAllGauges.size()>());
    return std::exchange(wake, false) && sleepers != 0;
  }
  /// Call when held bytes have left the steady range.
  void update_level() WEIR_REQUIRES(mutex);
  template <std::size_t... Gauges>
  void publish(std::index_sequence<Gauges...> /*all*/) noexcept WEIR_REQUIRES(mutex) {
    (levels[Gauges].store((statistics.*kAllGauges[Gauges]).current.count,
                          std::memory_order_relaxed),
     ...);
  }
};

/// A change of a pool's state. Takes the lock. Its end updates the pressure level, unlocks and
/// wakes the sleepers.
class WEIR_SCOPED_CAPABILITY PoolChange {
 public:
  explicit PoolChange(PoolState& state) WEIR_ACQUIRE(state.mutex)
      : state_(state), lock_(state.mutex) {}
  ~PoolChange() WEIR_RELEASE() {
    if (!ended_) finish();
  }
  PoolChange(const PoolChange&) = delete;
  PoolChange& operator=(const PoolChange&) = delete;

  void end() WEIR_RELEASE() {
    finish();
    ended_ = true;
  }
  [[nodiscard]] Lock& lock() noexcept { return lock_; }

 private:
  void finish() WEIR_NO_THREAD_SAFETY_ANALYSIS {
    const bool wakes = state_.conclude();
    lock_.unlock();
    if (wakes) state_.changed.notify_all();
  }

  PoolState& state_;
  Lock lock_;
  bool ended_ = false;
};

/// Budget claimed by a growth (`growing`, `begin_transit`), until destruction.
class PoolClaim {
 public:
  PoolClaim(PoolState& state, Bytes size) noexcept : state_(state), size_(size) {}
  PoolClaim(const PoolClaim&) = delete;
  PoolClaim& operator=(const PoolClaim&) = delete;
  ~PoolClaim() {
    const PoolChange change(state_);
    state_.growing -= size_;
    state_.end_transit();
  }

 private:
  PoolState& state_;
  const Bytes size_;
};

}  // namespace weir
