#pragma once

// Decides which of the files that name a program to trust. Pure.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::timeline {

// Finds the holders of file locks in the kernel's list.

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

/// Whether the process that a file names holds the file's lock.
enum class LockHolder : std::uint8_t {
  kNamed,
  kAnother,
  kUnseen,  ///< the kernel does not reveal the holder here
};

/// The process that a file names.
struct Claim {
  std::uint32_t pid = 0;
  std::uint64_t started = 0;
  std::uint64_t pid_namespace = 0;
  LockHolder holder = LockHolder::kUnseen;
};

/// Returns for each claim whether to trust it. Trusts a claim whose process holds the lock. Trusts
/// a claim with an unknown holder, unless another claim names the same process and either its
/// process holds the lock, or nothing distinguishes the two.
[[nodiscard]] std::vector<bool> believed(std::span<const Claim> claims);

}  // namespace weir::timeline
