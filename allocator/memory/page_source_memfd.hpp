#pragma once

// Pages of host memory that really move: pieces of a file in memory, mapped one by one.

#include <sys/types.h>

#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir {

/// Page n is the n-th piece of the file, counted from 1, so pages that are neighbours in the file
/// and at their addresses are one mapping to the operating system, which allows a process some
/// 65,000 (vm.max_map_count): past those, `map` does fewer. A page that is a mapping of its own can
/// still be unmapped there, unless others take the room of a mapping that is kept for this.
///
/// The mappings are shared ones, since a page keeps its bytes while it moves; so a child after fork
/// would write into its parent's memory. It does not get the mappings (MADV_DONTFORK): an access
/// there ends it. Asked by such a child, nothing is made, mapped or given back. A child that runs
/// another program is not concerned.
class MemfdPages final : public PageSource {
 public:
  /// Pages are taken of `gauge`, which outlives this. Throws Error where there is no such file.
  explicit MemfdPages(CapacityGauge& gauge);
  ~MemfdPages() override;
  [[nodiscard]] Bytes page_size() const override { return kPageSize; }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* address, Bytes size) noexcept override;
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override;
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override;
  /// What the operating system has behind the pages: what was written to, and not destroyed.
  [[nodiscard]] Bytes resident() const;

  static constexpr Bytes kPageSize = mib(2);  ///< as on a GPU

 private:
  [[nodiscard]] bool in_owner() const noexcept;
  [[nodiscard]] bool map_run(const Mapping& first, std::size_t count) noexcept;
  void give_back(Page first, std::size_t count) noexcept;
  /// Addresses with nothing behind them, in place of what is mapped at `address`.
  [[nodiscard]] bool clear_mapped(void* address, std::size_t bytes) noexcept;

  CapacityGauge& gauge_;
  const int file_;
  const pid_t owner_;
  const std::uint64_t pages_in_file_;
  Mutex mutex_{LockRank::kLeaf};
  /// A heap, the lowest first: low pages lie together, which saves mappings. Has room for every
  /// page made, so that giving one back needs no memory.
  std::vector<std::uint64_t> free_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t made_ WEIR_GUARDED_BY(mutex_) = 0;
  /// A mapping whose end makes room for another, at the limit; null where there was no room for it.
  void* spare_ WEIR_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weir
