#pragma once

/// @file
/// Admission alone: for a frontend with operations and tensors of its own, whose memory comes from
/// a Pool. A Scheduler does the same for its batches.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>
#include <unordered_map>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/pool.hpp"
#include "allocator/progress/progress.hpp"
#include "scheduler/admission/admission.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir {

/// Options of a gate.
struct BatchGateOptions {
  /// The most batches that may be submitted and not done when the next one begins; none: the memory
  /// alone decides.
  RunAhead run_ahead{.batches = 2, .time = std::chrono::nanoseconds{}};
  /// The longest that an allocation of a younger open batch waits for an older one.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
};

class BatchGate;

/// A batch from BatchGate::begin until it is closed, at the end of the scope at the latest. An
/// exception abandons it: nothing is learned from it. Must not outlive its gate. One thread at a
/// time may move, close or destroy it, while no other uses it.
class [[nodiscard]] GatedBatch {
 public:
  GatedBatch() = default;
  GatedBatch(GatedBatch&& other) noexcept;             ///< leaves `other` closed
  GatedBatch& operator=(GatedBatch&& other) noexcept;  ///< closes its own batch first
  GatedBatch(const GatedBatch&) = delete;
  GatedBatch& operator=(const GatedBatch&) = delete;
  ~GatedBatch();

  /// Allocates as Pool::allocate, charged to the batch. Any number of threads may do so at once.
  /// Waits for submitted work, and at most the grace for other open batches, before it throws
  /// OutOfMemory. Throws Cancelled if the batch's stop token ends that wait, and UsageError if it
  /// is closed. Free it with BatchGate::deallocate.
  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream, std::string_view label = {});
  /// Closes: all its work is enqueued. It ends when the gate's streams have passed what is enqueued
  /// there now. Does not wait.
  void close() noexcept { end(true); }
  /// Closes as an exception would.
  void abandon() noexcept { end(false); }

 private:
  friend class BatchGate;
  GatedBatch(BatchGate& gate, TicketRef ticket, std::stop_token stop) noexcept;
  void end(bool learn) noexcept;

  BatchGate* gate_ = nullptr;  ///< null once closed
  TicketRef ticket_;
  std::stop_token stop_;
  int exceptions_ = 0;  ///< in flight when it was begun
};

/// Holds back who begins batches, by what the pool holds and what open batches still need.
/// Thread-safe.
class BatchGate {
 public:
  static constexpr std::size_t kMostStreams = kStreamRoles;  ///< the most streams of a gate

  /// Batches work on `streams` of `progress`, one to kMostStreams, otherwise it throws UsageError.
  /// It also does if a scheduler or another gate has the pool. `pool` and `progress` outlive it.
  BatchGate(Pool& pool, Progress& progress, std::span<const StreamId> streams,
            const BatchGateOptions& options = {});
  /// Every batch must be closed.
  ~BatchGate();
  BatchGate(const BatchGate&) = delete;
  BatchGate& operator=(const BatchGate&) = delete;

  /// Begins a batch. Waits here until it is admitted: for submitted work, or at most the grace for
  /// open batches. Batches of one `kind` need about the same memory. Throws Cancelled if
  /// `options.stop` ends the wait, and UsageError for a weight of 0.
  [[nodiscard]] GatedBatch begin(std::string_view kind, const BatchOptions& options = {},
                                 CallSite where = CallSite::here());
  /// Frees in the order of `stream`, as Pool::deallocate. Also for memory that was not allocated
  /// for a batch.
  Freed deallocate(void* pointer, StreamId stream);

  /// Returns stalls and batches so far, after settling what the device has finished.
  [[nodiscard]] AdmissionStatistics statistics();

 private:
  friend class GatedBatch;
  struct Charge {
    TicketRef batch;
    Bytes block;
  };
  using Charges = std::unordered_map<const void*, Charge>;

  [[nodiscard]] void* allocate(const Owner& owner, Bytes bytes, StreamId stream,
                               std::string_view label);
  /// Notes that the block is the batch's. Frees it if that fails.
  void charge(void* pointer, const Charge& charge, StreamId stream, const Stalls& waits);

  Pool& pool_;
  const PoolLimits limits_;
  const std::size_t streams_;
  Admission admission_;
  Mutex mutex_{LockRank::kLeaf};
  Charges charges_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
