#pragma once

// Everything of Weir in one context: pools over the driver's memory, fences of its streams, and the
// batches that the program marks.

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "tools/preload/context/device.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/marked_batches.hpp"
#include "tools/preload/context/pacer.hpp"
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
  /// Releases what is cached as Pools::trim does. Awaits the device if that needs it.
  Bytes trim(Call& call, Bytes keep = {}) noexcept;
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

  /// Adopts the account's budget.
  void follow_budget();
  /// Drops everything after the context has ended.
  void forget() noexcept;

  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] Device& device() noexcept { return device_; }
  [[nodiscard]] Account& account() noexcept { return account_; }
  [[nodiscard]] Fences& fences() noexcept { return fences_; }
  [[nodiscard]] DriverUpstream& upstream() noexcept { return upstream_; }
  [[nodiscard]] Pools& pool() noexcept { return pools_; }
  [[nodiscard]] const Pools& pool() const noexcept { return pools_; }
  /// The batches that the program marks.
  [[nodiscard]] MarkedBatches& batches() noexcept { return batches_; }
  [[nodiscard]] const MarkedBatches& batches() const noexcept { return batches_; }
  /// Returns statistics since the beginning, with waits for other pools, even if the program reset
  /// peaks.
  [[nodiscard]] Statistics statistics() const;
  /// Returns the launches that were held back.
  [[nodiscard]] Waits paced() const { return pacer_.waits(); }
  /// Returns the requests that waited for other pools of the device.
  [[nodiscard]] Waits waits_for_others() const;

 private:
  /// Returns the memory, or null if there is none.
  [[nodiscard]] void* obtain(Room& room, Attempt& attempt, Bytes bytes, Stalls& waits);
  /// Builds the report of a failed request, and counts the failure if the pool did not.
  void tell(const Attempt& attempt, const Room& room, const std::exception& why,
            std::string& report) noexcept;

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
  MarkedBatches batches_;
  Pacer pacer_;

  mutable Mutex mutex_{LockRank::kLeaf};
  std::unordered_set<CUdeviceptr> kept_ WEIR_GUARDED_BY(mutex_);
  std::atomic<bool> keeps_any_{false};        ///< whether `kept_` has any
  Waits for_others_ WEIR_GUARDED_BY(mutex_);  ///< requests that waited for other pools
};

}  // namespace weir::preload
