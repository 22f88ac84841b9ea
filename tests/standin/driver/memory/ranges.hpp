#pragma once

// The kind of memory behind a pointer.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

enum class RangeKind {
  kPageable,  ///< nothing the driver knows
  kPinned,    ///< host memory, allocated by the driver or registered
  kDevice,
  kManaged,  ///< counts as either
};

struct Range {
  RangeKind kind = RangeKind::kPageable;
  std::uintptr_t start = 0;
  std::size_t bytes = 0;  ///< of the block, or of the pages mapped in one piece
  Device* device = nullptr;
  bool mapped = true;  ///< false: reserved addresses that count as device memory

  /// False if `count` bytes at `address` leave the range. Pageable memory has no known end.
  [[nodiscard]] bool holds(std::uintptr_t address, std::size_t count) const {
    return kind == RangeKind::kPageable || count <= start + bytes - address;
  }
};

Range find_range(Driver& driver, std::uintptr_t address);

}  // namespace weir::standin
