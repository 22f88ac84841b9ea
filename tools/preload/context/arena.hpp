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
#include "tools/preload/context/device.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/pools.hpp"
#include "tools/preload/context/upstream.hpp"
#include "tools/preload/driver/call.hpp"
#include "tools/preload/settings/settings.hpp"

namespace weir::preload {

class Room;

/// Thread-safe. Never destroyed: a program may free memory while it is ending.
class Arena {
 public:
  Arena(const Driver& driver, CUcontext context, Device& device, const Settings& settings);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Allocates for work on `stream`, or on any stream (`fences().sync()`). If there is no memory,
  /// returns the driver's code and sets `report` the first time.
  [[nodiscard]] CUresult allocate(Call& call, CUdeviceptr& pointer, std::size_t bytes,
                                  StreamId stream, std::string& report) noexcept;
  /// Frees in the order of `stream`. Returns nullopt if the pointer is not from here.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr pointer, StreamId stream) noexcept;
  /// Whether `address` lies in memory served from here, allocated or not. The driver must never
  /// answer a free of it.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept {
    return upstream_.serves(address);
  }
  /// Call before a capture begins. Its requests find what the device has passed by now, in the
  /// cache or, if the budget or the device would not have as much room again, as room.
  void expect_capture(Call& call) noexcept;
  /// Call after work was enqueued on `stream`: sets a fence and may wait.
  void note_launches(Call& call, StreamId stream) noexcept;
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

  /// Begins a batch of the calling thread, which has none open here. Nothing: skipped.
  [[nodiscard]] std::optional<TicketRef> begin_batch(Call& call, std::string_view kind) noexcept;
  /// Ends it; does nothing if there is none.
  void end_batch(Call& call) noexcept;

  /// Adopts the account's budget.
  void follow_budget();
  /// Calls `limit.set_for` with what its pools hold and its batches were promised.
  void limit_to_use(BudgetLimit& limit) noexcept { admission_.limit_to_use(limit); }
  /// Drops everything after the context has ended.
  void forget() noexcept;

  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] Device& device() noexcept { return device_; }
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
  /// A batch that a thread has begun and not ended.
  struct OpenBatch {
    std::uint64_t thread = 0;
    TicketRef ticket;
    Fences::Clock::time_point began;
    TimelineMarker* marker = nullptr;  ///< the marker that was notified
  };
  struct Charge {
    TicketRef ticket;
    Bytes bytes;
  };
  class WaitsForOthers;
  /// Returns the memory, or null if there is none.
  [[nodiscard]] void* obtain(Room& room, Attempt& attempt, Bytes bytes, std::string_view label,
                             Stalls& waits);
  /// Builds the report of a failed request, and counts the failure if the pool did not.
  void tell(const Attempt& attempt, const Room& room, const std::exception& why,
            std::string& report) noexcept;
  void charge(void* pointer, Bytes bytes, const Stalls& waits) noexcept;
  [[nodiscard]] std::optional<Charge> take_charge(void* pointer) noexcept;
  [[nodiscard]] std::optional<TicketRef> ticket_here() const;
  void hold_back(Call& call);
  void give_up(Point point);

  /// Returns what the device has free, for all programs.
  [[nodiscard]] std::optional<Bytes> free_on_device() const noexcept;

  const Driver& driver_;
  const CUcontext context_;
  Device& device_;
  Account& account_;
  const Settings& settings_;
  Fences fences_;
  DriverUpstream upstream_;
  Pools pools_;
  Admission admission_;

  std::atomic<std::uint64_t> batches_{0};
  std::atomic<std::uint64_t> charged_blocks_{0};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<OpenBatch> open_ WEIR_GUARDED_BY(mutex_);
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
