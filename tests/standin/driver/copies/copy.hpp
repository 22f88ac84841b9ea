#pragma once

// Copies. When a copy returns, it has read everything from pageable memory, and has written
// everything to pageable memory. Other memory is left to the stream.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// The kind of address that a function requires.
enum class Side { kAny, kHost, kDevice };

/// `rows` of `bytes` each, which begin every `to_pitch` and `from_pitch` bytes.
struct Copy {
  std::uintptr_t to = 0;
  std::uintptr_t from = 0;
  std::size_t bytes = 0;
  Side to_side = Side::kAny;
  Side from_side = Side::kAny;
  std::size_t rows = 1;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;
};

CUresult do_copy(Call& call, CUstream stream, const Copy& copy, bool asynchronous);

inline std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace weir::standin
