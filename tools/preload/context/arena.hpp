#pragma once

// Everything of Weir in one context: pools over the driver's memory, fences of its streams, and the
// batches that the program marks.

#include <atomic>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "scheduler/admission/admission.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/pools.hpp"
#include "tools/preload/context/upstream.hpp"
#include "tools/preload/settings/settings.hpp"

namespace weir::preload {

class Arena;

/// A batch that a thread has begun and not ended.
struct OpenBatch {
  Arena* arena = nullptr;
  TicketRef ticket;
  Fences::Clock::time_point began;
  TimelineMarker* marker = nullptr;  ///< the marker that was notified
};

/// Thread-safe. Never destroyed: a program may free memory while it is ending.
class Arena {
 public:
  Arena(const Driver& driver, CUcontext context, Account& account, const Settings& settings);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Allocates for work on `stream`, or on any stream (`fences().sync()`). If there is no memory,
  /// returns the driver's code and sets `report` the first time.
  [[nodiscard]] CUresult allocate(CUdeviceptr& pointer, std::size_t bytes, StreamId stream,
                                  std::string& report) noexcept;
  /// Frees in the order of `stream`. Returns nullopt if the pointer is not from here.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr pointer, StreamId stream) noexcept;
  /// Whether `address` lies in memory served from here, allocated or not. The driver must never
  /// answer a free of it.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept {
    return upstream_.serves(address);
  }
  /// Call before a capture begins. Its requests find what the device has passed by now, in the
  /// cache or, if the budget would not have as much room again, as room.
  void expect_capture() noexcept;
  /// Call after work was enqueued on `stream`: sets a fence and may wait.
  void note_launches(StreamId stream) noexcept;
  /// Whether memory could be taken out of the pool permanently.
  enum class Shared {
    kNotOurs,
    kInOrder,  ///< no: it was allocated in stream order
    kPart,     ///< no: it is part of a driver allocation, or not allocated
    kGiven,
  };
  /// Tries to take out the driver's allocation at `base`.
  [[nodiscard]] Shared share(CUdeviceptr base, Bytes& size) noexcept;

  /// Keeps the memory at `pointer` permanently, because a captured graph uses it.
  void keep(CUdeviceptr pointer) noexcept;
  [[nodiscard]] bool is_kept(CUdeviceptr pointer) const noexcept;

  [[nodiscard]] std::optional<OpenBatch> begin_batch(std::string_view kind) noexcept;
  void end_batch(const OpenBatch& batch) noexcept;

  /// Adopts the account's budget.
  void follow_budget();
  /// Calls `limit.set_for` with what its pools hold and its batches were promised.
  void limit_to_use(BudgetLimit& limit) noexcept { admission_.limit_to_use(limit); }
  /// Drops everything after the context has ended.
  void forget() noexcept;

  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] Account& account() noexcept { return account_; }
  [[nodiscard]] Fences& fences() noexcept { return fences_; }
  [[nodiscard]] DriverUpstream& upstream() noexcept { return upstream_; }
  [[nodiscard]] Pools& pool() noexcept { return pools_; }
  [[nodiscard]] const Pools& pool() const noexcept { return pools_; }
  /// Returns statistics since the beginning, with waits for other pools, even if the program reset
  /// peaks.
  [[nodiscard]] Statistics statistics() const;
  [[nodiscard]] Waits paced() const;
  /// Returns the requests that waited for other pools of the device.
  [[nodiscard]] Waits waits_for_others() const;
  /// Returns what held marked batches back.
  [[nodiscard]] AdmissionStatistics admission() const { return admission_.statistics(); }
  [[nodiscard]] std::uint64_t batches() const noexcept { return batches_.load(); }

 private:
  struct Charge {
    TicketRef ticket;
    Bytes bytes;
  };
  /// Builds the report of a failed request, and counts the failure if the pool did not.
  void tell(const Attempt& attempt, const std::exception& why, std::string& report) noexcept;
  void charge(void* pointer, Bytes bytes, const Stalls& waits) noexcept;
  [[nodiscard]] std::optional<Charge> take_charge(void* pointer) noexcept;
  [[nodiscard]] std::optional<TicketRef> ticket_here() const;
  void hold_back();
  void give_up(Point point);
  /// Waits for work after which another pool of the device can give memory back. Returns false if
  /// there is none or the wait failed.
  [[nodiscard]] bool await_others(Stalls& waits);

  const CUcontext context_;
  Account& account_;
  const Settings& settings_;
  Fences fences_;
  DriverUpstream upstream_;
  Pools pools_;
  class BoundedProgress;
  std::unique_ptr<BoundedProgress> bounded_;
  Admission admission_;

  std::atomic<std::uint64_t> batches_{0};
  std::atomic<std::uint64_t> charged_blocks_{0};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<TicketRef> open_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<void*, Charge> charged_ WEIR_GUARDED_BY(mutex_);
  std::unordered_set<CUdeviceptr> kept_ WEIR_GUARDED_BY(mutex_);
  std::atomic<bool> keeps_any_{false};  ///< whether `kept_` has any
  Waits paced_ WEIR_GUARDED_BY(mutex_);
  Waits for_others_ WEIR_GUARDED_BY(mutex_);  ///< requests that waited for other pools
  /// The point of a wait that ran out; no thread is paced for it again.
  std::optional<Point> given_up_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t give_ups_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::preload
