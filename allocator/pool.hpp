#pragma once

/// @file
/// A stream-ordered pool over an upstream, under a budget.
///
/// Guarantees: reserved bytes never exceed the budget. No block has two holders. Every wait is for
/// submitted device work, so it ends. A failed request changes nothing. Requests may not fit:
/// `allocate` then throws OutOfMemory with a report.
///
/// Thread-safe. One lock per pool, never held across a call to the upstream or to Progress.
/// docs/architecture.md walks one allocation through these functions.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/attempt.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/pressure.hpp"
#include "allocator/budget_source.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/pool_options.hpp"
#include "allocator/pool_state.hpp"
#include "allocator/progress/progress.hpp"
#include "allocator/statistics.hpp"
#include "allocator/timeline/source.hpp"

namespace weir {

class PoolStrategy;
struct KindOfPool;

/// The stages of running out that a policy may disable.
struct RunningOut {
  bool hand_over = true;  ///< take another stream's block after a wait on the device
  bool wait = true;       ///< block the host until work frees memory
  /// Before a hand-over, wait for memory that comes free earlier, if there is enough of it. A
  /// stream that takes over a block waits for the last work that used it, so it would stand still
  /// for longer than the host.
  bool wait_first = false;
  /// Hand over rather than reserve more than kMostUnexplained times what was ever needed at once:
  /// for callers whose streams come and go, so that each would have memory of its own.
  bool before_growth = false;
};

/// See RunningOut::before_growth. Two: as much again for what its own streams have not passed.
inline constexpr std::uint64_t kMostUnexplained = 2;

/// An allocated block.
struct BlockInUse {
  const void* begin;  ///< its address
  StreamId home;      ///< the stream that allocated it
  Bytes size;         ///< the block's size
  Bytes requested;    ///< the bytes requested
};

/// A piece of a pool's memory: an allocated block or a free one.
struct PoolBlock {
  /// Who has it.
  enum class State : std::uint8_t {
    kAllocated,  ///< handed out
    kAwaiting,   ///< freed, with the device not known to be done
    kCached,     ///< free
  };
  std::uintptr_t begin = 0;     ///< its address
  Bytes size;                   ///< the piece's size
  Bytes requested;              ///< the bytes requested, if allocated
  StreamId home;                ///< the stream that allocated it, now or last
  State state{};                ///< who has it
  bool begins_segment = false;  ///< false: it continues the segment of the piece before it
};

/// Reuses memory of one device. Guarantees: see the file's description.
class Pool final : public MemoryStatistics, private TimelineSource {
 public:
  /// Validates `options` and resolves the budget by the upstream's capacity. Throws UsageError.
  /// `memory`'s parts must outlive the pool.
  explicit Pool(DeviceMemory memory, PoolOptions options = {});
  /// Waits until the device is done with every block, then returns all to the upstream, even blocks
  /// never freed.
  ~Pool() override;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Allocates `bytes` for later work on `stream`. Returns null for 0 bytes. Throws OutOfMemory.
  /// `label` names the holder in reports (31 characters are kept).
  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream, std::string_view label = {});
  /// Like `allocate`, but returns null instead of throwing OutOfMemory, and sets `attempt` to the
  /// findings of each stage. Of the given `attempt` uses `limit`, `at_once`
  /// and `for_all`, or all if it is `resumed`.
  [[nodiscard]] void* try_allocate(Bytes bytes, StreamId stream, std::string_view label,
                                   Attempt& attempt);
  /// Counts the failure and throws OutOfMemory with the report of `attempt`.
  [[noreturn]] void fail(const Attempt& attempt);

  /// Frees in the order of `stream`: work enqueued so far may still use the memory. A stream other
  /// than the allocating one counts as a use. Throws UsageError if `pointer` is not allocated here.
  Freed deallocate(void* pointer, StreamId stream);
  /// Like `deallocate`, but returns nullopt instead of throwing, for callers that try several
  /// pools.
  [[nodiscard]] std::optional<Freed> try_deallocate(void* pointer, StreamId stream);
  /// Records a use on `stream`: the free will wait for that stream. Throws UsageError if `pointer`
  /// is not allocated here. Ignores null.
  void record_use(void* pointer, StreamId stream);

  /// Returns the point of the block that awaits the device longest, or nullopt. As of the last
  /// poll.
  [[nodiscard]] std::optional<Point> oldest_awaiting() const;
  /// Returns the oldest point of all free blocks that is not passed. After it, more memory can be
  /// released.
  [[nodiscard]] std::optional<Point> oldest_outstanding() const;
  /// Updates how far the device has come, so that passed memory can be reused.
  void poll() override;
  /// Returns how much `trim` could release, as of the last poll.
  [[nodiscard]] Bytes releasable() const;
  /// Releases cached segments that the device has passed, least recently freed first, until `keep`
  /// bytes stay reserved. Returns the bytes released. Without `may_release`, which says that the
  /// caller has awaited the device, only where Upstream::may_release says so.
  Bytes trim(Bytes keep = {}, bool may_release = false);
  /// Returns the allocated block that begins at `pointer`, or nullopt.
  [[nodiscard]] std::optional<BlockInUse> find(const void* pointer) const;
  /// Returns the allocated block whose requested bytes include `address`, or nullopt. Slower than
  /// `find`: holds the lock for a step per 512 bytes before the address or per block, whichever are
  /// fewer.
  [[nodiscard]] std::optional<BlockInUse> find_around(const void* address) const;
  /// Returns all memory of the pool at one moment, ascending by address. A segment is memory that
  /// the upstream gave at once or, of pages, as long as it has no gap: its pieces follow each other
  /// without one. Leaves out what is on its way from, to or between addresses. Holds the lock for a
  /// step per block.
  [[nodiscard]] std::vector<PoolBlock> blocks() const;
  /// Gives the allocated block at `pointer` to the caller, who returns it to the upstream. Returns
  /// nullopt if no block begins there.
  [[nodiscard]] std::optional<BlockInUse> disown(void* pointer);

  /// See PoolPlace.
  [[nodiscard]] std::uint16_t device() const noexcept override {
    return state_.options.place.device;
  }
  /// Returns held bytes and budget at one moment, for admission.
  [[nodiscard]] Pressure pressure() const override;
  /// Returns all figures at one moment. Call `poll` first for current ones.
  [[nodiscard]] Statistics statistics() const override;
  /// Returns the current level of a gauge, by its place in kAllGauges, without a lock. It is of the
  /// end of some call, and another gauge's may be of another.
  [[nodiscard]] Bytes level(std::size_t gauge) const noexcept {
    return {state_.levels[gauge].load(std::memory_order_relaxed)};
  }
  /// Resets each gauge's peak to its current level.
  void reset_peaks();
  /// Returns the largest cached block, or zero.
  [[nodiscard]] Bytes largest_cached() const;
  /// Returns the `most` labels that hold the most, as `label: size in n blocks` joined by `; `.
  [[nodiscard]] std::string holders(std::size_t most) const override;

  /// Sets the hard limit and the stages of running out. Throws UsageError if the limit exceeds the
  /// upstream's capacity. A limit below the reserved bytes stops growth and releases nothing.
  void set_limits(Bytes budget, RunningOut running_out);
  /// Raises the hard limit to `budget`, or to the upstream's capacity; lowers nothing.
  void raise_budget(Bytes budget) noexcept;
  /// Lowers the hard limit to `budget`; raises nothing, and releases nothing.
  void lower_budget(Bytes budget) noexcept;
  /// Asks `source` for more before a request waits or fails; null: for nothing. Until then the
  /// source must stay valid.
  void draw_from(BudgetSource* source) noexcept { source_.store(source); }
  /// Returns the source, or null.
  [[nodiscard]] BudgetSource* budget_source() const noexcept { return source_.load(); }
  /// Asks the source, if there is one, for a budget of `budget` in all. Returns whether it rose.
  bool raise_budget_to(Bytes budget) noexcept override;
  /// Returns what counts against the limit: reserved bytes, and those on their way from the
  /// upstream.
  [[nodiscard]] Bytes taken() const;
  /// Returns the hard limit: growth never takes reserved bytes beyond it.
  [[nodiscard]] Bytes budget() const override;
  /// Returns the block size for a request of `bytes`, or nullopt beyond 2^63.
  [[nodiscard]] std::optional<Bytes> block_size(Bytes bytes) const noexcept {
    return state_.options.block_size(bytes);
  }
  /// Returns the options of construction, without later `set_limits`.
  [[nodiscard]] const PoolOptions& options() const noexcept { return state_.options; }

 private:
  friend class PoolLimits;
  struct Resolved {
    PoolOptions options;
    Bytes budget;
  };
  [[nodiscard]] static Resolved resolved(const Upstream& upstream, PoolOptions options);
  Pool(Resolved resolved, DeviceMemory memory);

  class Line;
  struct HostWait;

  [[nodiscard]] void* serve(Attempt& attempt);

  // The stages of one request, in order (pool_stages.cpp). Each takes the lock and returns the
  // block, marked allocated, or null. The strategy implements growth and release.
  /// Queues behind waiting requests unless it may pass them.
  [[nodiscard]] Block* take_own(Attempt& request, Line& line);
  /// Which streams are asked how far the device is.
  enum class Asking : std::uint8_t {
    kFew,  ///< some; where new memory would do, only those whose answer is cheap
    kAll,
  };
  /// Asks streams how far they have come. Sets in `request` whether all were asked.
  [[nodiscard]] Block* take_passed(Attempt& request, Asking asking);
  /// Whether there is room for new memory, and not much freed memory awaits the device.
  [[nodiscard]] bool would_rather_grow(const Attempt& request) const;
  /// Whether growth would reserve more than live memory explains (RunningOut::before_growth).
  [[nodiscard]] bool would_rather_hand_over(const Attempt& request) const;
  /// Returns whether it waited for another request's growth.
  [[nodiscard]] bool await_growth(Attempt& request, Line& line);
  /// Returns whether the budget's source made room.
  [[nodiscard]] bool raise_for(const Attempt& request) noexcept;
  [[nodiscard]] Block* hand_over(Attempt& request);
  /// Returns whether it waited for a free or release under way.
  [[nodiscard]] bool await_transit(Attempt& request, Line& line);
  /// Returns false if nothing has become free since, and waiting is not allowed or would free
  /// nothing.
  [[nodiscard]] bool wait_for_device(Attempt& request, Line& line);

  [[nodiscard]] Block* run_stages(Attempt& request);
  [[nodiscard]] HostWait begin_wait(Attempt& request) WEIR_REQUIRES(state_.mutex);
  /// Counts it, in `request` too.
  void end_wait(const HostWait& wait, Attempt& request) WEIR_REQUIRES(state_.mutex);
  /// Joins the line once. Returns true if it slept, so findings are stale. Leaves the line if
  /// its stop ends the sleep.
  [[nodiscard]] bool line_up(Line& line, Attempt& request, Lock& lock) WEIR_REQUIRES(state_.mutex);
  [[nodiscard]] OutOfMemory out_of_memory(const Attempt& attempt) const;
  [[nodiscard]] std::string report(const Attempt& attempt, const MemoryShortage& figures) const
      WEIR_REQUIRES(state_.mutex);
  [[nodiscard]] std::vector<MemoryHolder> biggest_holders(std::size_t most) const
      WEIR_REQUIRES(state_.mutex);

  // For timelines and live views (pool_report.cpp).
  void add_figures(LiveFigures& figures) const override WEIR_EXCLUDES(state_.mutex);
  void record_live(TimelineSink& sink) override WEIR_EXCLUDES(state_.mutex);
  /// Last step of construction: others see the pool afterwards.
  void begin_showing();
  void note_self(TimelineSink& sink) WEIR_REQUIRES(state_.mutex);

  PoolState state_;
  const KindOfPool& kind_;
  const std::unique_ptr<PoolStrategy> strategy_;
  RunningOut running_out_ WEIR_GUARDED_BY(state_.mutex);
  bool limits_claimed_ WEIR_GUARDED_BY(state_.mutex) = false;  ///< by a PoolLimits
  /// The waiting requests; null if none.
  Line* line_first_ WEIR_GUARDED_BY(state_.mutex) = nullptr;
  Line* line_last_ WEIR_GUARDED_BY(state_.mutex) = nullptr;
  FirstInLine first_ WEIR_GUARDED_BY(state_.mutex);  ///< the request of the first
  std::atomic<BudgetSource*> source_{nullptr};       ///< of more budget
};

/// The limits of a pool, held by one owner, such as a scheduler. Refuses a second owner. The limits
/// stay in force afterwards.
class PoolLimits {
 public:
  /// Sets the limits as Pool::set_limits does. Also throws UsageError if they have another owner.
  PoolLimits(Pool& pool, Bytes budget, RunningOut running_out);
  ~PoolLimits() { end(); }
  PoolLimits(const PoolLimits&) = delete;
  PoolLimits& operator=(const PoolLimits&) = delete;

 private:
  void end() noexcept;

  Pool& pool_;
};

}  // namespace weir
