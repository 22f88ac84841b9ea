#pragma once

// Memory that the driver keeps for the program by itself on one device: in pools that the program
// made, and for its graphs. Freed memory may stay there, and only the driver knows how much.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/driver/driver.hpp"

namespace weir::preload {

/// Sets the account's levels of Kind::kPools and Kind::kGraphs to what is reserved. Thread-safe.
/// Calls the driver without a lock.
class OwnMemory {
 public:
  OwnMemory(const Driver& driver, Account& account) noexcept : driver_(driver), account_(account) {}

  /// Returns the program's pool that memory in stream order comes from; null: the default pool.
  [[nodiscard]] CUmemoryPool current() const noexcept {
    return current_.load(std::memory_order_relaxed);
  }
  /// Sets it, also to the default pool.
  void set_current(CUmemoryPool pool) noexcept {
    current_.store(is_default(pool) ? nullptr : pool);
  }
  /// Whether `pool` is the device's default pool.
  [[nodiscard]] bool is_default(CUmemoryPool pool) const noexcept;
  /// A pool of the program, of this device. Call when it is used; throws std::bad_alloc.
  void add(CUmemoryPool pool);
  /// Call when the program has destroyed it.
  void remove(CUmemoryPool pool) noexcept;
  /// Call once graphs have their own memory here.
  void use_graphs() noexcept { graphs_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_used() const noexcept {
    return graphs_.load(std::memory_order_relaxed) || pools_known_.load(std::memory_order_relaxed);
  }

  /// Asks the driver. Returns how much less is reserved than before.
  Bytes refresh() noexcept;
  /// Returns what pools reserved and nobody used, as of the last refresh.
  [[nodiscard]] Bytes unused() const noexcept { return {unused_.load()}; }
  /// Returns what graphs reserve, as of the last refresh.
  [[nodiscard]] Bytes of_graphs() const noexcept { return {of_graphs_.load()}; }
  /// Makes the driver release up to `need` of what it keeps unused. Returns how much less is
  /// reserved.
  Bytes trim(Bytes need) noexcept;

  /// A request to a pool, while the driver has it.
  class Asking {
   public:
    Asking(OwnMemory& memory, CUmemoryPool pool, Bytes bytes) noexcept;
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    /// Returns how much more the pool must reserve for it and for others' open requests to it.
    [[nodiscard]] Bytes lacks() const noexcept;

   private:
    OwnMemory& memory_;
    const CUmemoryPool pool_;
    const Bytes bytes_;
  };

 private:
  struct OfPool {
    CUmemoryPool pool;
    Bytes asked;  ///< by open requests
  };
  struct Level {
    Bytes reserved;
    Bytes used;
  };
  [[nodiscard]] Level level_of(CUmemoryPool pool) const noexcept;
  [[nodiscard]] std::vector<OfPool> pools() const;

  const Driver& driver_;
  Account& account_;
  std::atomic<CUmemoryPool> current_{nullptr};
  std::atomic<bool> graphs_{false};
  std::atomic<bool> pools_known_{false};
  std::atomic<std::uint64_t> unused_{0};
  std::atomic<std::uint64_t> of_graphs_{0};
  std::atomic<std::uint64_t> readings_{0};
  mutable Mutex mutex_{LockRank::kStream};  // before the account's
  std::vector<OfPool> pools_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t newest_ WEIR_GUARDED_BY(mutex_) = 0;  ///< the reading that the levels are of
};

}  // namespace weir::preload
