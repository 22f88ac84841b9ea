#pragma once

// Programs that start with more rights than their caller: the dynamic loader ignores LD_PRELOAD for
// them. The rules are those of Linux's execve (security/commoncap.c).

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::cli {

/// Whether the kernel would run a program of `mode` under another user or group than `user` and
/// `group`.
[[nodiscard]] constexpr bool changes_identity(mode_t mode, uid_t owner, gid_t owners_group,
                                              uid_t user, gid_t group) noexcept {
  constexpr mode_t kSetUser = 04000;
  constexpr mode_t kSetGroup = 02010;  // without group execution it means a lock
  return ((mode & kSetUser) != 0 && owner != user) ||
         ((mode & kSetGroup) == kSetGroup && owners_group != group);
}

/// Whether file capabilities (the bytes of `security.capability`) grant anything to a process that
/// may inherit `inheritable`. Malformed bytes grant nothing.
[[nodiscard]] bool grants_capabilities(std::string_view attribute, std::uint64_t inheritable);

struct FileRights {
  mode_t mode = 0;
  uid_t owner = 0;
  gid_t group = 0;
  std::string capabilities;  ///< bytes of the attribute; empty if none
  bool ignored = false;      ///< its file system is mounted nosuid
};

struct OwnRights {
  uid_t user = 0;
  gid_t group = 0;
  std::uint64_t inheritable = 0;  ///< one bit per capability
  bool no_new_ones = false;       ///< PR_SET_NO_NEW_PRIVS, which disables set-user-id
};

enum class Secure {
  kNo,            ///< the loader preloads
  kIdentity,      ///< by set-user-id or set-group-id
  kCapabilities,  ///< by file capabilities
};
/// Whether, and why, a program with the rights `file` starts securely. Pure.
[[nodiscard]] Secure secure_by(const FileRights& file, const OwnRights& own);
/// The same for the file at `path` and this process; kNo if it cannot be checked.
[[nodiscard]] Secure secure_by(const std::string& path);

}  // namespace weir::cli
