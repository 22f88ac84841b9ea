#pragma once

// Follows the links of an output path. Every writer calls this first: a rename by root could
// replace the machine's /dev/stdout.

#include <cstdint>
#include <optional>
#include <string>

namespace weir {

/// Identifies a file independently of its name.
struct FileIdentity {
  std::uint64_t device = 0;  ///< of the file system
  std::uint64_t inode = 0;   ///< in that file system

  /// Whether both are the same file.
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// The target of a path.
struct OutputPlace {
  std::string path;                      ///< absolute, without links; as given if special
  std::optional<FileIdentity> identity;  ///< none if the file does not exist yet
  /// A terminal, pipe or device: written to, never replaced.
  bool special = false;
  /// Not zero: the errno why nothing can be written. EPERM for a file under /dev or /proc, where
  /// nothing is created or replaced.
  int error = 0;
};

/// Follows links, even to a missing target. Changes nothing.
[[nodiscard]] OutputPlace find_output(const std::string& path);

}  // namespace weir
