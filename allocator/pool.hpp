#pragma once

/// @file
/// A stream-ordered pool over an upstream, under a budget.
///
/// Promises: reserved bytes never exceed the budget; a block is never in two hands; every wait is
/// for device work that is already submitted, so it ends; a request that fails changes nothing.
/// Does not promise: that a request fits. `allocate` then throws OutOfMemory with the report.
///
/// Thread-safe. One lock per pool; it is never held across a call to the upstream or to
/// Progress. docs/architecture.md walks one allocation through these functions.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/attempt.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/memory_statistics.hpp"
#include "allocator/pool_line.hpp"
#include "allocator/pool_options.hpp"
#include "allocator/pool_state.hpp"
#include "allocator/pressure.hpp"
#include "allocator/progress/progress.hpp"
#include "allocator/statistics.hpp"
#include "allocator/timeline/source.hpp"

namespace weir {

class PoolStrategy;
struct KindOfPool;

/// The stages of running out that a policy may leave out.
struct RunningOut {
  bool hand_over = true;  ///< take another stream's block behind a wait on the device
  bool wait = true;       ///< hold the host for work that will free something
};

/// A block that is handed out.
struct BlockInUse {
  const void* begin;  ///< its address
  StreamId home;      ///< the stream that it was allocated on
  Bytes size;         ///< of the block
  Bytes requested;    ///< asked for
};

/// Memory of one device, kept and handed out again. The file's description says what it promises.
class Pool final : public MemoryStatistics, private TimelineSource {
 public:
  /// Validates `options` and resolves the budget against the upstream's capacity; UsageError.
  /// `memory`'s parts must outlive the pool.
  explicit Pool(DeviceMemory memory, PoolOptions options = {});
  /// Waits for the device to finish with every block, then gives all of them back, also those that
  /// were never freed.
  ~Pool() override;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Memory for `bytes` that work enqueued on `stream` from now on may use; null for 0 bytes.
  /// Throws OutOfMemory. `label` names the holder in reports (the first 31 characters are kept).
  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream, std::string_view label = {});
  /// The same, but null instead of OutOfMemory, and `attempt` then says what each stage found. Of
  /// what the caller sets in `attempt` its `stop` alone is kept.
  [[nodiscard]] void* try_allocate(Bytes bytes, StreamId stream, std::string_view label,
                                   Attempt& attempt);
  /// Counts the failure and throws OutOfMemory with the report of `attempt`.
  [[noreturn]] void fail(const Attempt& attempt);

  /// Frees in the order of `stream`: work enqueued so far may still use the memory. A stream other
  /// than the allocation's counts as a use there. UsageError for what is not allocated here.
  Freed deallocate(void* pointer, StreamId stream);
  /// The same, but nothing instead of UsageError: for callers that have to ask several pools.
  [[nodiscard]] std::optional<Freed> try_deallocate(void* pointer, StreamId stream);
  /// The memory is also used by work on `stream`, so its free will await that stream as well.
  /// UsageError for what is not allocated here; null is nobody's and does nothing.
  void record_use(void* pointer, StreamId stream);

  /// The point that lets the block that was freed longest ago, of those that await the device, go
  /// on its way; nothing when none awaits it. As of the last poll.
  [[nodiscard]] std::optional<Point> oldest_awaiting() const;
  /// The same of all free blocks: after the oldest point some memory can be given back that cannot
  /// be now.
  [[nodiscard]] std::optional<Point> oldest_outstanding() const;
  /// Learns how far the device has come, so that what it has passed can be used.
  void poll() override;
  /// Gives cached segments whose point the device has passed back to the upstream, least recently
  /// freed first, until `keep` is what stays reserved: all of them unless told. Returns the bytes
  /// given back.
  Bytes trim(Bytes keep = {});
  /// What is handed out at `pointer`, which must be where a block begins; nothing if nothing is.
  [[nodiscard]] std::optional<BlockInUse> find(const void* pointer) const;
  /// The same of any address among the bytes that were asked for. Slower: the lock is held for a
  /// step for each 512 bytes before the address, or for each block, whichever are fewer.
  [[nodiscard]] std::optional<BlockInUse> find_around(const void* address) const;
  /// Gives the memory at `pointer`, which is handed out, to the caller for good: it is no block of
  /// the pool any more, and goes back to the upstream by the caller. Nothing if nothing is there.
  [[nodiscard]] std::optional<BlockInUse> give_away(void* pointer);

  /// As PoolPlace has it.
  [[nodiscard]] std::uint16_t device() const noexcept override {
    return state_.options.place.device;
  }
  /// What admission decides on: held bytes and budget, from one moment.
  [[nodiscard]] Pressure pressure() const override;
  /// All figures, from one moment. `poll` first to have them as of now.
  [[nodiscard]] Statistics statistics() const override;
  /// Each gauge's peak starts again at its current level.
  void reset_peaks();
  /// The largest block that is cached now; zero when none is.
  [[nodiscard]] Bytes largest_cached() const;
  /// The `most` labels that hold the most, one `label: size in n blocks` each, joined by `; `.
  [[nodiscard]] std::string holders(std::size_t most) const override;

  /// Sets the hard limit, at most the upstream's capacity (UsageError), and what running out may
  /// do. Lowering it below what is reserved releases nothing: it stops growth.
  void set_limits(Bytes budget, RunningOut running_out);
  /// The hard limit in force: what reserved never exceeds by growth.
  [[nodiscard]] Bytes budget() const override;
  /// The size of the block that serves a request of `bytes`; nothing for one beyond 2^63.
  [[nodiscard]] std::optional<Bytes> block_size(Bytes bytes) const noexcept {
    return state_.options.block_size(bytes);
  }
  /// As given at construction; `set_limits` does not change them.
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

  /// What `attempt` asks for; null where there is none.
  [[nodiscard]] void* serve(Attempt& attempt);

  // The stages of one request, in order (pool_stages.cpp). Each takes the lock for itself and
  // returns the block, marked allocated, or null. Growth and release are the strategy's.
  /// Behind those who wait already, unless it may pass them by.
  [[nodiscard]] Block* take_own(const Attempt& request, Line& line);
  /// Asks so many streams how far they have come. `request` is told whether there were more.
  [[nodiscard]] Block* take_passed(Attempt& request, std::size_t streams);
  /// True: another request's growth stood in the way and has had its outcome.
  [[nodiscard]] bool await_growth(const Attempt& request, Line& line);
  [[nodiscard]] Block* hand_over(const Attempt& request);
  /// True: a free or a release was between its two halves and has ended.
  [[nodiscard]] bool await_transit(const Attempt& request, Line& line);
  /// False: nothing has come free since, and to wait is not allowed or would free nothing.
  [[nodiscard]] bool wait_for_device(Attempt& request, Line& line);

  [[nodiscard]] Block* run_stages(Attempt& request);
  /// Lines up, once; true when it had to sleep, so that what was found before is old news. Gives up
  /// where `stop` ends the sleep.
  [[nodiscard]] bool line_up(Line& line, const std::stop_token& stop, Lock& lock)
      WEIR_REQUIRES(state_.mutex);
  [[nodiscard]] OutOfMemory out_of_memory(const Attempt& attempt) const;
  [[nodiscard]] std::string report(const Attempt& attempt, const MemoryShortage& figures) const
      WEIR_REQUIRES(state_.mutex);
  [[nodiscard]] std::vector<MemoryHolder> biggest_holders(std::size_t most) const
      WEIR_REQUIRES(state_.mutex);

  // For timelines and live views (pool_timeline.cpp).
  void add_figures(LiveFigures& figures) const override WEIR_EXCLUDES(state_.mutex);
  void record_live(TimelineSink& sink) override WEIR_EXCLUDES(state_.mutex);
  /// At the end of its making: from here on others see it.
  void begin_showing();
  void note_self(TimelineSink& sink) WEIR_REQUIRES(state_.mutex);

  PoolState state_;
  const KindOfPool& kind_;
  const std::unique_ptr<PoolStrategy> strategy_;
  RunningOut running_out_ WEIR_GUARDED_BY(state_.mutex);
  bool limits_claimed_ WEIR_GUARDED_BY(state_.mutex) = false;  ///< by a PoolLimits
  /// The line of those who wait; null when none does.
  Line* line_first_ WEIR_GUARDED_BY(state_.mutex) = nullptr;
  Line* line_last_ WEIR_GUARDED_BY(state_.mutex) = nullptr;
  FirstInLine first_ WEIR_GUARDED_BY(state_.mutex);  ///< what the first of them asks for
};

/// A pool's limits as one owner sets them: a second one is refused for as long as this lives. A
/// scheduler is such an owner. What it set stays in force after its end.
class PoolLimits {
 public:
  /// Sets them as Pool::set_limits does. UsageError as there, and where another has them.
  PoolLimits(Pool& pool, Bytes budget, RunningOut running_out);
  ~PoolLimits() { end(); }
  PoolLimits(const PoolLimits&) = delete;
  PoolLimits& operator=(const PoolLimits&) = delete;

 private:
  void end() noexcept;

  Pool& pool_;
};

}  // namespace weir
