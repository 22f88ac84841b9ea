#pragma once

// Pages by the driver's functions: reserve, create, map, unmap. The CUDA upstream and the swap-in
// bring the functions, and care for room and contexts.

#include <cuda.h>

#include <cstddef>
#include <span>

#include "allocator/memory/page_source.hpp"

namespace weir {

/// As <cuda.h> declares them; null if the driver lacks them (before CUDA 10.2).
struct PageCalls {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemExportToShareableHandle) export_page = nullptr;  ///< null: no page is shared

  [[nodiscard]] bool complete() const noexcept;
};

/// How many things a call has done, and why it stopped.
struct PagesDone {
  std::size_t count = 0;
  CUresult code = CUDA_SUCCESS;
  const char* call = "";  ///< that failed
};

/// Whether another process can map new pages.
enum class PageSharing : bool {
  kNone,
  kByFile,  ///< by a file descriptor
};

/// Pages of one device's memory. No call checks room, sets a context or logs. Thread-safe.
class DriverPages {
 public:
  /// `calls` is complete. Pages are the driver's smallest; `page_size` is zero if it makes none.
  DriverPages(const PageCalls& calls, int device) noexcept;
  [[nodiscard]] Bytes page_size() const noexcept { return page_; }
  /// Returns null if there are no such addresses.
  [[nodiscard]] void* reserve(Bytes size) const noexcept;
  [[nodiscard]] CUresult unreserve(void* address, Bytes size) const noexcept;
  [[nodiscard]] PagesDone create(std::span<Page> pages,
                                 PageSharing sharing = PageSharing::kNone) const noexcept;
  /// Sets `file` to a new descriptor by which another process can map the page, which was created
  /// for that. The caller closes it.
  [[nodiscard]] CUresult export_page(Page page, int& file) const noexcept;
  /// Tries each page, even after a failure. Reports how many are given back.
  [[nodiscard]] PagesDone destroy(std::span<const Page> pages) const noexcept;
  /// Gives access to the owning device and to `others`, once per contiguous range: that driver call
  /// may wait for the device (<cuda.h>, note_sync).
  [[nodiscard]] PagesDone map(std::span<const Mapping> mappings,
                              std::span<const int> others = {}) const noexcept;
  /// Unmaps one by one: the driver unmaps only what was mapped in one piece.
  [[nodiscard]] PagesDone unmap(std::span<const Mapping> mappings) const noexcept;
  /// Gives `device` access to a range that is mapped without gaps.
  [[nodiscard]] CUresult allow(void* address, Bytes size, int device) const noexcept;

 private:
  [[nodiscard]] PagesDone map_run(std::span<const Mapping> run,
                                  std::span<const int> others) const noexcept;

  const PageCalls calls_;
  const int device_;
  Bytes page_;
};

}  // namespace weir
