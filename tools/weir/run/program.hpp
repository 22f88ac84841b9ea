#pragma once

// The program that `weir run` starts: finds it, and checks that a library can be preloaded into it.
// The dynamic loader ignores LD_PRELOAD for programs that start with more rights than their caller;
// the rules are those of Linux's execve (security/commoncap.c).

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/setting.hpp"

namespace weir::cli {

struct Interpreter {
  std::string name;
  bool in_path = false;  ///< searched in PATH: `#!/usr/bin/env NAME`
};

/// Returns nothing if `front`, the file's first bytes, is not a script; an empty name if the script
/// names no interpreter.
[[nodiscard]] std::optional<Interpreter> interpreter_of(std::string_view front);

/// Whether a shell runs such a file itself without an interpreter line: `front` is not ELF and its
/// first line is text. True for an empty file.
[[nodiscard]] bool is_shell_script(std::string_view front);

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

/// Returns the file for `name`, or throws UsageError of one line: itself if it has a slash,
/// otherwise the first executable one in PATH.
[[nodiscard]] std::string find_program(const std::string& name, const Environment& environment);

/// Arguments for execve.
struct Started {
  std::string path;
  std::vector<std::string> words;  ///< argv
};

/// Returns how to start `path`, or throws UsageError of one line, with `words`, of which the first
/// is its name. /bin/sh runs a script without #!, as with a shell and execvp. Refuses a file that
/// cannot be preloaded into; for a script, its interpreter counts.
[[nodiscard]] Started check_program(const std::string& path, std::vector<std::string> words,
                                    const Environment& environment);

}  // namespace weir::cli
