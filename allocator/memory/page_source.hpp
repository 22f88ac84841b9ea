#pragma once

/// @file
/// Addresses and the physical pages behind them, apart: what the `paged` pool is built on. A range
/// of addresses is reserved once, and pages are mapped where something lives. Implementations are,
/// with upstream.hpp's, the only code that asks a driver or the operating system for memory. All
/// are thread-safe; none may be called under a lock of ours.

#include <cstddef>
#include <cstdint>
#include <span>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Names one physical page of a PageSource.
struct Page {
  std::uint64_t id = 0;  ///< zero is no page

  /// The same page.
  friend constexpr bool operator==(Page, Page) noexcept = default;
};

/// One page and the address, a multiple of the page's size, that it is mapped at.
struct Mapping {
  void* address = nullptr;  ///< where
  Page page;                ///< what
};

/// A source of addresses and of pages. A call that does many things does them in their order and
/// says how many it has done: what it did stays done, and what it did not do is as before.
class PageSource {
 public:
  PageSource() = default;
  PageSource(const PageSource&) = delete;
  PageSource& operator=(const PageSource&) = delete;
  virtual ~PageSource() = default;

  /// The size of every page, in bytes: a power of two.
  [[nodiscard]] virtual Bytes page_size() const = 0;

  /// `size` bytes of addresses (a multiple of the page's size), aligned to a page, with nothing
  /// behind them; null where there are none to be had.
  [[nodiscard]] virtual void* reserve(Bytes size) = 0;
  /// Gives back what `reserve(size)` returned. Nothing is mapped there.
  virtual void unreserve(void* address, Bytes size) noexcept = 0;

  /// Fills `pages` with new pages from its front; how many. Fewer where there is no more memory.
  /// Throws only for a fault that is not about room, and has made none then.
  [[nodiscard]] virtual std::size_t create(std::span<Page> pages) = 0;
  /// Gives pages back, which are mapped nowhere any more.
  virtual void destroy(std::span<const Page> pages) noexcept = 0;

  /// Maps each page at its address, for reading and writing by the device; how many, from the
  /// front, are mapped now. The addresses are reserved, and nothing is mapped there.
  ///
  /// A page may be mapped at several addresses. Then what one operation of the device writes at one
  /// of them is seen at another by an operation that a stream orders behind it, and by no other:
  /// CUDA's "Virtual Aliasing Support" (CUDA C++ Programming Guide, virtual memory management)
  /// promises that.
  [[nodiscard]] virtual std::size_t map(std::span<const Mapping> mappings) noexcept = 0;
  /// Unmaps them; how many, from the front, are unmapped now. The device must be done with them.
  [[nodiscard]] virtual std::size_t unmap(std::span<const Mapping> mappings) noexcept = 0;
};

}  // namespace weir
