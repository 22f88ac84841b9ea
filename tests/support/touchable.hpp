#pragma once

// Whether memory of this process can be read and written, found out without dying of it: the kernel
// says EFAULT where the program would get a signal.

#include <unistd.h>

#include <array>

namespace weir::testing {

/// Looks at the byte at `address` alone, and leaves it as it is. Not for memory that others change.
[[nodiscard]] inline bool is_touchable(void* address) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return false;
  const bool touched = write(ends[1], address, 1) == 1 && read(ends[0], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return touched;
}

}  // namespace weir::testing
