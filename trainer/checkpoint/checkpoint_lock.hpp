#pragma once

// Keeps a checkpoint's file for one run, from its begin to its end.

#include <string>

#include "tools/program/output_file.hpp"

namespace weir {

/// Locks FILE.lock beside the file that a path leads to: each checkpoint replaces FILE itself, and
/// with it a lock on it. FILE.lock says whose it is. One that a killed run left is not locked any
/// more, and is used again.
class CheckpointLock {
 public:
  /// Throws UsageError with `option` and the path if another run has the file, or if its file
  /// system has no locks. Locks nothing where no file is replaced (no path, a device, a pipe) or
  /// where none can be: who writes refuses that.
  CheckpointLock(const std::string& option, const std::string& path, LockCall lock = flock);
  /// Removes FILE.lock.
  ~CheckpointLock();
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;

 private:
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace weir
