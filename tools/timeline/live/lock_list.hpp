#pragma once

// Finds the holders of file locks in the kernel's list.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace weir::timeline {

/// Processes with an exclusive flock, by file number (file_number).
using FlockHolders = std::map<std::string, std::uint32_t>;

/// Parses the text of /proc/locks.
[[nodiscard]] FlockHolders flock_holders(const std::string& locks);

/// Returns a file's number as in /proc/locks. Does not match on file systems whose files have
/// another device number than the file system itself (btrfs).
[[nodiscard]] std::string file_number(dev_t device, ino_t inode);

/// The kernel's list, read by the constructor.
class LockList {
 public:
  LockList();
  /// Returns the process that took the file's lock. It may have ended after leaving the file to
  /// another process. Returns nothing if the list has no entry: the lock was taken later, or in an
  /// invisible pid namespace, or there is no list.
  [[nodiscard]] std::optional<std::uint32_t> holder_of(dev_t device, ino_t inode);

 private:
  FlockHolders holders_;
  int looks_left_;
};

}  // namespace weir::timeline
