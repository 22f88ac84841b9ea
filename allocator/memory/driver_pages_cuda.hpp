#pragma once

// The driver's own functions for pages, and what is made of them: reserve, create, map, unmap. The
// CUDA upstream and the swap-in each bring the functions, and stand for room and contexts.

#include <cuda.h>

#include <cstddef>
#include <span>

#include "allocator/memory/page_source.hpp"

namespace weir {

/// As <cuda.h> declares them; null where the driver is too old to have them (before CUDA 10.2).
struct PageCalls {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;

  /// Whether the driver has them all.
  [[nodiscard]] bool complete() const noexcept;
};

/// How far a call that does many things came, and why it stopped there.
struct PagesDone {
  std::size_t count = 0;
  CUresult code = CUDA_SUCCESS;
  const char* call = "";  ///< of the driver, the one that failed
};

/// Pages of one device's memory. No call checks room, sets a context or logs. Thread-safe.
class DriverPages {
 public:
  /// `calls` is complete. Pages are as small as the driver makes them; `page_size` is zero where it
  /// makes none.
  DriverPages(const PageCalls& calls, int device) noexcept;
  [[nodiscard]] Bytes page_size() const noexcept { return page_; }
  /// Null where there are no such addresses.
  [[nodiscard]] void* reserve(Bytes size) const noexcept;
  [[nodiscard]] CUresult unreserve(void* address, Bytes size) const noexcept;
  [[nodiscard]] PagesDone create(std::span<Page> pages) const noexcept;
  /// Tries each of them, whatever becomes of those before it; how many are given back.
  [[nodiscard]] PagesDone destroy(std::span<const Page> pages) const noexcept;
  /// Access is for the device that has the memory, and for each of `others`. It is set once for
  /// what lies side by side: a call of the driver that may wait for the device (<cuda.h>,
  /// note_sync).
  [[nodiscard]] PagesDone map(std::span<const Mapping> mappings,
                              std::span<const int> others = {}) const noexcept;
  /// One by one: the driver unmaps only what was mapped in one piece.
  [[nodiscard]] PagesDone unmap(std::span<const Mapping> mappings) const noexcept;
  /// Gives `device` access to what is mapped in the range, without a gap.
  [[nodiscard]] CUresult allow(void* address, Bytes size, int device) const noexcept;

 private:
  [[nodiscard]] PagesDone map_run(std::span<const Mapping> run,
                                  std::span<const int> others) const noexcept;

  const PageCalls calls_;
  const int device_;
  Bytes page_;
};

}  // namespace weir
