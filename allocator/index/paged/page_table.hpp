#pragma once

// Which page is mapped where. The addresses that a pool reserves are far more than what is ever
// mapped of them, so there is a part of the table only for what was: 4 KiB for each 512 pages. A
// data structure only: it takes no lock.

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

  /// Makes room for the pages from `begin` to `end`. May fail, and has forgotten nothing then.
  void make_room(std::uintptr_t begin, std::uintptr_t end) {
    if (begin == end) return;
    for (std::uint64_t part = part_of(begin); part <= part_of(end - 1); ++part) {
      std::unique_ptr<Part>& made = parts_[part];
      if (made == nullptr) made = std::make_unique<Part>();
    }
  }
  /// The page at `address`, where room was made; none where nothing is mapped.
  [[nodiscard]] Page& at(std::uintptr_t address) {
    return (*parts_.find(part_of(address))->second)[address / page_.count % kPages];
  }
  /// How many parts there are.
  [[nodiscard]] std::size_t parts() const noexcept { return parts_.size(); }

  /// Calls `visit(Mapping)` for each page, in no particular order.
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
