#pragma once

// What the driver served outside the pools, by handle or address, to count its end.

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "allocator/base/mutex.hpp"
#include "tools/preload/context/own_memory.hpp"

namespace weir::preload {

/// Thread-safe.
class PassedTable {
 public:
  struct Entry {
    Account* account = nullptr;
    CUcontext context = nullptr;  ///< the memory ends with this context
    Kind kind = Kind::kDirect;
    Bytes bytes;
    /// The program's pool, which is counted as a whole by `own`; null if none.
    CUmemoryPool pool = nullptr;
    OwnMemory* own = nullptr;
  };
  void add(std::uint64_t handle, const Entry& entry);
  /// Removes and returns the entry with this handle, of `kind` or a kind that shares its numbers.
  /// Counted until `settle`. Call before the driver can reuse the handle.
  [[nodiscard]] std::optional<Entry> take(Kind kind, std::uint64_t handle) noexcept;
  /// Call after `take`. Counts the entry as freed if the driver `freed` it, otherwise puts it back.
  void settle(std::uint64_t handle, const std::optional<Entry>& entry, bool freed) noexcept;
  /// From now on counts what is alive of the pool one by one: the program has destroyed it. Returns
  /// how much that is.
  Bytes orphan(CUmemoryPool pool) noexcept;
  /// Drops the context and its memory.
  void forget(CUcontext context) noexcept;

 private:
  static void remove(const Entry& entry) noexcept;

  mutable Mutex mutex_{LockRank::kStream};
  std::unordered_map<std::uint64_t, Entry> entries_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::preload
