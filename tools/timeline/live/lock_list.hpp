#pragma once

// Who holds the locks of files, as the kernel tells it.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace weir::timeline {

/// Processes that hold an exclusive flock, by the number of its file (file_number).
using FlockHolders = std::map<std::string, std::uint32_t>;

/// What the text of /proc/locks says.
[[nodiscard]] FlockHolders flock_holders(const std::string& locks);

/// A file as /proc/locks names it. On a file system whose files are of another device than itself
/// (btrfs) it is not found there.
[[nodiscard]] std::string file_number(dev_t device, ino_t inode);

/// The kernel's list, read when it is made.
class LockList {
 public:
  LockList();
  /// The process that took the file's lock; it may have ended, if it left the file to another one.
  /// Nothing where the list has none: the lock was taken since, or by a process of a pid namespace
  /// that is not seen from here, or there is no list.
  [[nodiscard]] std::optional<std::uint32_t> holder_of(dev_t device, ino_t inode);

 private:
  FlockHolders holders_;
  int looks_left_;
};

}  // namespace weir::timeline
