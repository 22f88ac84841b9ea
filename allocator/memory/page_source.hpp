#pragma once

/// @file
/// Addresses and the physical pages behind them, separately, for the `paged` pool: it reserves
/// addresses once and maps pages only under live blocks. Only implementations of this and of
/// upstream.hpp get memory from a driver or the operating system. All are thread-safe. Call none
/// under a lock of ours.

#include <cstddef>
#include <cstdint>
#include <span>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Names one physical page of a PageSource.
struct Page {
  std::uint64_t id = 0;  ///< zero is no page

  /// Compares ids.
  friend constexpr bool operator==(Page, Page) noexcept = default;
};

/// One page and the address to map it at, a multiple of the page size.
struct Mapping {
  void* address = nullptr;  ///< where
  Page page;                ///< what
};

/// A source of addresses and pages. A call on many items handles them in order and returns how
/// many. Completed items are kept; the others are unchanged.
class PageSource {
 public:
  PageSource() = default;
  PageSource(const PageSource&) = delete;
  PageSource& operator=(const PageSource&) = delete;
  virtual ~PageSource() = default;

  /// Returns the size of every page in bytes, a power of two.
  [[nodiscard]] virtual Bytes page_size() const = 0;

  /// Reserves `size` bytes of unmapped, page-aligned addresses (a multiple of the page size).
  /// Returns null if there are none.
  [[nodiscard]] virtual void* reserve(Bytes size) = 0;
  /// Gives back what `reserve(size)` returned. Nothing may be mapped there.
  virtual void unreserve(void* address, Bytes size) noexcept = 0;

  /// Fills the front of `pages` with new pages and returns how many: fewer if memory runs out.
  /// Throws only for other faults, having made no page.
  [[nodiscard]] virtual std::size_t create(std::span<Page> pages) = 0;
  /// Gives back pages that are not mapped anywhere.
  virtual void destroy(std::span<const Page> pages) noexcept = 0;

  /// Maps each page at its address, for reads and writes by the device. Returns how many, from the
  /// front, are mapped now. The addresses must be reserved and unmapped.
  ///
  /// A page may be mapped at several addresses. A write at one is seen at another only by
  /// operations that a stream orders behind it: CUDA promises this under "Virtual Aliasing Support"
  /// (CUDA C++ Programming Guide, virtual memory management).
  [[nodiscard]] virtual std::size_t map(std::span<const Mapping> mappings) noexcept = 0;
  /// Unmaps them. Returns how many, from the front, are unmapped now. The device must be done with
  /// them.
  [[nodiscard]] virtual std::size_t unmap(std::span<const Mapping> mappings) noexcept = 0;
};

}  // namespace weir
