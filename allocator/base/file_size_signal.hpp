#pragma once

#include <csignal>

namespace weir {

/// Makes a write past RLIMIT_FSIZE fail on the calling thread instead of raising SIGXFSZ.
/// Async-signal-safe.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() noexcept;
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;  ///< one of the program's own
};

}  // namespace weir
