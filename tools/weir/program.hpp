#pragma once

// The program that `weir run` is to start: where it is, and whether a library can be preloaded into
// it. Everything here throws UsageError of one line.

#include <sys/types.h>

#include <string>

#include "allocator/setting.hpp"

namespace weir::cli {

/// The file that `name` means: itself if it has a slash, and otherwise the first executable one in
/// PATH.
[[nodiscard]] std::string find_program(const std::string& name, const Environment& environment);

/// Whether the kernel would give a program of `mode` another user or group than `user` and `group`
/// have: the loader then preloads nothing.
[[nodiscard]] constexpr bool changes_identity(mode_t mode, uid_t owner, gid_t owners_group,
                                              uid_t user, gid_t group) noexcept {
  constexpr mode_t kSetUser = 04000;
  constexpr mode_t kSetGroup = 02010;  // without the group's right to execute it means a lock
  return ((mode & kSetUser) != 0 && owner != user) ||
         ((mode & kSetGroup) == kSetGroup && owners_group != group);
}

/// Refuses a file that nothing can be preloaded into; a script stands for its interpreter.
void check_program(const std::string& path, const Environment& environment);

}  // namespace weir::cli
