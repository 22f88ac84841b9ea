#pragma once

// Memory that the driver keeps for the program by itself on one device: in pools that the program
// made, and for its graphs. Freed memory may stay there, and only the driver knows how much.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/progress.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/driver/driver.hpp"

namespace weir::preload {

/// Sets the account's levels of Kind::kPools and Kind::kGraphs to what is reserved. Thread-safe.
/// Calls the driver without a lock.
class OwnMemory {
 public:
  OwnMemory(const Driver& driver, Account& account) noexcept : driver_(driver), account_(account) {}

  /// What the driver maps at a time (CU_MEM_ALLOC_GRANULARITY_MINIMUM of today's devices).
  static constexpr Bytes kPiece = mib(2);
  /// Returns what the driver reserves for `bytes`.
  [[nodiscard]] static constexpr Bytes in_pieces(Bytes bytes) noexcept {
    return kPiece * ((bytes.count + kPiece.count - 1) / kPiece.count);
  }

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
  /// A pool of the program, of this device. Throws std::bad_alloc.
  void add(CUmemoryPool pool);
  [[nodiscard]] bool has(CUmemoryPool pool) const;
  /// Returns what the pool has handed out, also if it is freed and in use by queued work.
  [[nodiscard]] Bytes used_by(CUmemoryPool pool) const noexcept { return level_of(pool).used; }
  /// Call when the program has destroyed a pool: the driver has `left` of it until `points` are
  /// passed.
  using Points = std::vector<std::pair<Progress*, Point>>;
  void end(CUmemoryPool pool, Bytes left, Points points) noexcept;
  /// Call when the program has allocated from the pool, or freed.
  void note_allocated(CUmemoryPool pool, Bytes bytes) noexcept;
  void note_freed(CUmemoryPool pool, Bytes bytes) noexcept;
  /// Call once graphs have their own memory here.
  void use_graphs() noexcept { graphs_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_used() const noexcept {
    return graphs_.load(std::memory_order_relaxed) || pools_known_.load(std::memory_order_relaxed);
  }

  /// Asks the driver. Returns how much less is reserved than before.
  Bytes refresh() noexcept;
  /// Returns what pools and graphs reserved and nobody used, as of the last refresh.
  [[nodiscard]] Bytes unused() const noexcept { return {unused_.load()}; }
  /// Returns what was freed into pools, and queued work still uses, as of the last refresh.
  [[nodiscard]] Bytes pending() const noexcept { return {pending_.load()}; }
  /// Returns how often the program has freed into pools, or destroyed one.
  [[nodiscard]] std::uint64_t frees() const noexcept { return frees_.load(); }
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
    /// Returns how much more the pool must reserve for it, beside others' open requests. From now
    /// on they count on that. Those that the driver has just served are counted twice until they
    /// end.
    [[nodiscard]] Bytes lacks() noexcept;

   private:
    OwnMemory& memory_;
    const CUmemoryPool pool_;
    const Bytes bytes_;
    Bytes lacks_;
  };

 private:
  struct OfPool {
    CUmemoryPool pool = nullptr;
    Bytes asked{};  ///< by open requests
    Bytes lacks{};  ///< of them
    Bytes live{};   ///< allocated and not freed
  };
  struct Level {
    Bytes reserved;
    Bytes used;
  };
  [[nodiscard]] Level level_of(CUmemoryPool pool) const noexcept;
  [[nodiscard]] Level level_of_graphs() const noexcept;
  [[nodiscard]] std::vector<OfPool> pools() const;
  /// Calls `change` with the pool's entry under the lock, if there is one.
  template <typename Change>
  void with(CUmemoryPool pool, const Change& change) noexcept;
  /// Returns what the driver has of pools that were destroyed.
  [[nodiscard]] Bytes left_of_ended();

  const Driver& driver_;
  Account& account_;
  std::atomic<CUmemoryPool> current_{nullptr};
  std::atomic<bool> graphs_{false};
  std::atomic<bool> pools_known_{false};
  std::atomic<std::uint64_t> unused_{0};
  std::atomic<std::uint64_t> pending_{0};
  std::atomic<std::uint64_t> frees_{0};
  std::atomic<std::uint64_t> readings_{0};
  mutable Mutex mutex_{LockRank::kStream};  // before the account's
  std::vector<OfPool> pools_ WEIR_GUARDED_BY(mutex_);
  Bytes left_ WEIR_GUARDED_BY(mutex_);                ///< of ended pools
  Points points_ WEIR_GUARDED_BY(mutex_);             ///< after which it is the driver's
  std::uint64_t newest_ WEIR_GUARDED_BY(mutex_) = 0;  ///< the reading that the levels are of
};

}  // namespace weir::preload
