#pragma once

// The batches that a program marks on a context's threads: each is admitted, and charged with what
// is allocated during it.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/admission/admission.hpp"
#include "tools/preload/context/pools.hpp"
#include "tools/preload/driver/call.hpp"

namespace weir::preload {

/// Thread-safe.
class MarkedBatches {
 public:
  MarkedBatches(Pools& pools, Fences& fences, const Settings& settings);

  /// Begins a batch of the calling thread, which has none open here. Nothing: skipped.
  [[nodiscard]] std::optional<TicketRef> begin(Call& call, std::string_view kind) noexcept;
  /// Ends it; does nothing if there is none.
  void end(Call& call) noexcept;
  /// Returns how many were begun.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(); }

  struct Charge {
    TicketRef ticket;
    Bytes bytes;
  };
  /// Charges new memory to the batch that it belongs to, if that is known.
  void charge(void* pointer, Bytes bytes, const Stalls& waits) noexcept;
  /// Returns and ends the charge of memory that is to be freed, if it has one. Call before its pool
  /// has it back: another thread may get the address afterwards.
  [[nodiscard]] std::optional<Charge> take_charge(void* pointer) noexcept;
  /// Call after the pool has it back.
  void note_freed(const std::optional<Charge>& charge, bool awaiting) noexcept;

  /// Calls `limit.set_for` with what the pools hold and batches were promised.
  void limit_to_use(BudgetLimit& limit) noexcept { admission_.limit_to_use(limit); }
  /// Returns what held batches back.
  [[nodiscard]] AdmissionStatistics statistics() const { return admission_.statistics(); }

 private:
  /// A batch that a thread has begun and not ended.
  struct OpenBatch {
    std::uint64_t thread = 0;
    TicketRef ticket;
    Fences::Clock::time_point began;
    TimelineMarker* marker = nullptr;  ///< the marker that was notified
  };

  Pools& pools_;
  Fences& fences_;
  const Settings& settings_;
  Admission admission_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> charged_blocks_{0};
  Mutex mutex_{LockRank::kLeaf};
  std::vector<OpenBatch> open_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<void*, Charge> charged_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::preload
