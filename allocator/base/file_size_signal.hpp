#pragma once

#include <csignal>

namespace weir {

/// While it lives, a file that must not grow (RLIMIT_FSIZE) is an error of who writes it, on the
/// calling thread, and no SIGXFSZ of the program. May be used in a signal handler.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() noexcept;
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;  ///< the program's own
};

}  // namespace weir
