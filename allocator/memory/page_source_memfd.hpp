#pragma once

// Pages of host memory that can be remapped: pieces of a file in memory.

#include <sys/types.h>

#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir {

/// Page n is the n-th piece of the file, counted from 1. Pages that are neighbours in the file and
/// at their addresses form one mapping. A process may have some 65,000 mappings (vm.max_map_count);
/// at the limit `map` maps fewer pages. A page with its own mapping can still be unmapped then: a
/// spare mapping is kept for this, unless others take its place.
///
/// The mappings are shared, so that a page keeps its bytes when it moves. A child after fork would
/// write into its parent's memory, so it does not inherit them (MADV_DONTFORK): an access ends the
/// child. In it no call makes, maps or gives back anything. A child that runs another program is
/// not affected.
class MemfdPages final : public PageSource {
 public:
  /// Charges pages to `gauge`, which outlives this. Throws Error if the system has no such files.
  explicit MemfdPages(CapacityGauge& gauge);
  ~MemfdPages() override;
  [[nodiscard]] Bytes page_size() const override { return kPageSize; }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* address, Bytes size) noexcept override;
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override;
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override;
  /// Returns the bytes that the operating system holds for the pages: those written to and not
  /// destroyed.
  [[nodiscard]] Bytes resident() const;

  static constexpr Bytes kPageSize = mib(2);  ///< as on a GPU

 private:
  [[nodiscard]] bool in_owner() const noexcept;
  [[nodiscard]] bool map_run(const Mapping& first, std::size_t count) noexcept;
  void release(Page first, std::size_t count) noexcept;
  /// Leaves the mapped addresses reserved and unmapped.
  [[nodiscard]] bool clear_mapped(void* address, std::size_t bytes) noexcept;

  CapacityGauge& gauge_;
  const int file_;
  const pid_t owner_;
  const std::uint64_t pages_in_file_;
  Mutex mutex_{LockRank::kLeaf};
  /// A heap, lowest first: contiguous pages need fewer mappings. Reserved for every page made, so
  /// that giving one back needs no memory.
  std::vector<std::uint64_t> free_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t made_ WEIR_GUARDED_BY(mutex_) = 0;
  /// At the limit, unmapping this makes room for another. Null if it could not be mapped.
  void* spare_ WEIR_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weir
