#pragma once

/// @file
/// Where a file that is to be written lies, once its links are followed. Every writer of the
/// project asks here first: by renaming, root could replace the machine's /dev/stdout.

#include <cstdint>
#include <optional>
#include <string>

namespace weir {

/// What a file is, whatever it is called.
struct FileIdentity {
  std::uint64_t device = 0;  ///< of the file system
  std::uint64_t inode = 0;   ///< in it

  /// Whether two names are of one file.
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Where a path leads.
struct OutputPlace {
  std::string path;  ///< absolute and without links, unless it is special: then as it was given
  std::optional<FileIdentity> identity;  ///< none where there is no file yet
  /// A terminal, a pipe or a device: it is written to as it is, and never replaced.
  bool special = false;
  /// Not zero: nothing can be written there, by errno. EPERM for what would be a file under /dev or
  /// /proc, where nothing is made or replaced.
  int error = 0;
};

/// Follows each link of `path`, also one whose target does not exist. Changes nothing.
[[nodiscard]] OutputPlace find_output(const std::string& path);

}  // namespace weir
