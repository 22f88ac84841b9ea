#pragma once

// Address ranges in pages.

#include <cstddef>
#include <cstdint>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"

namespace weir {

struct PageRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// A page size, a power of two.
class PageGrid {
 public:
  explicit constexpr PageGrid(Bytes page) noexcept : page_(page) {}

  [[nodiscard]] constexpr Bytes page() const noexcept { return page_; }
  [[nodiscard]] constexpr std::uintptr_t down(std::uintptr_t address) const noexcept {
    return address & ~(std::uintptr_t{page_.count} - 1);
  }
  [[nodiscard]] constexpr std::uintptr_t up(std::uintptr_t address) const noexcept {
    return down(address + page_.count - 1);
  }
  /// The range must be page-aligned.
  [[nodiscard]] constexpr std::size_t pages_in(PageRange range) const noexcept {
    return range.end > range.begin ? (range.end - range.begin) / page_.count : 0;
  }
  /// The pages wholly in a piece.
  [[nodiscard]] PageRange whole(const Block& piece) const noexcept {
    return {up(piece.begin()), down(piece.end())};
  }
  /// How many of those a block in `kept` does not touch.
  [[nodiscard]] std::size_t pages_outside(const Block& piece, PageRange kept) const noexcept {
    const auto [begin, end] = whole(piece);
    const std::uintptr_t before = down(kept.begin);
    const std::uintptr_t behind = up(kept.end);
    return pages_in({begin, end < before ? end : before}) +
           pages_in({begin > behind ? begin : behind, end});
  }

 private:
  Bytes page_;
};

}  // namespace weir
