#pragma once

// A file that one process at a time may have. The system releases the lock with the process,
// whatever ends it, so none is left behind.

#include <sys/file.h>

#include <string>

namespace weir {

/// flock(2), or a test's.
using LockCall = int (*)(int descriptor, int operation);

struct LockedFile {
  int descriptor = -1;  ///< locked until it is closed; −1 if `error` is set
  int error = 0;        ///< errno. EWOULDBLOCK: another process, or this one, has the file
};

/// Opens the regular file `name` for writing, or creates it, and locks it. Does not wait, follow a
/// link or change what is in it. Before closing the descriptor the owner may remove
/// the file: whoever gets the lock then makes a new one.
[[nodiscard]] LockedFile open_locked(const std::string& name, LockCall lock = flock);

}  // namespace weir
