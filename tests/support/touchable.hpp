#pragma once

// Checks whether this process can read and write memory, without dying of it: the kernel returns
// EFAULT where the program would get a signal.

#include <unistd.h>

#include <array>

namespace weir::testing {

/// Checks only the byte at `address`, and leaves it unchanged. Not for memory that others change.
[[nodiscard]] inline bool is_touchable(void* address) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return false;
  const bool touched = ::write(ends[1], address, 1) == 1 && ::read(ends[0], address, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return touched;
}

}  // namespace weir::testing
