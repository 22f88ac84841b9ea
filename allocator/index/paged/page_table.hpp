#pragma once

// Maps addresses to pages. A pool reserves far more addresses than it maps, so the table has parts
// only for those mapped: 4 KiB for 512 pages. A data structure only: takes no lock.

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "allocator/base/bytes.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {

class PageTable {
 public:
  explicit PageTable(Bytes page) noexcept : page_(page) {}

  /// Makes room for these pages. May fail, and then keeps all entries.
  void make_room(std::uintptr_t begin, std::uintptr_t end) {
    if (begin == end) return;
    for (std::uint64_t part = part_of(begin); part <= part_of(end - 1); ++part) {
      std::unique_ptr<Part>& made = parts_[part];
      if (made == nullptr) made = std::make_unique<Part>();
    }
  }
  /// `address` must have room. No page if nothing is mapped.
  [[nodiscard]] Page& at(std::uintptr_t address) {
    return (*parts_.find(part_of(address))->second)[address / page_.count % kPages];
  }
  [[nodiscard]] std::size_t parts() const noexcept { return parts_.size(); }

  /// Calls `visit(Mapping)` for each page, in arbitrary order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [number, part] : parts_) {
      if (part == nullptr) continue;
      std::uintptr_t address = number * kPages * page_.count;
      for (const Page page : *part) {
        if (page.id != 0) visit(Mapping{reinterpret_cast<void*>(address), page});
        address += page_.count;
      }
    }
  }

 private:
  static constexpr std::size_t kPages = 512;
  using Part = std::array<Page, kPages>;

  [[nodiscard]] std::uint64_t part_of(std::uintptr_t address) const noexcept {
    return address / page_.count / kPages;
  }

  Bytes page_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Part>> parts_;  ///< by number
};

}  // namespace weir
