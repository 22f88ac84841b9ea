#pragma once

// A file that is written completely or not at all: the old contents stay until the new ones are
// stored beside them. And a file that one process at a time may have: the system releases its lock
// with the process, whatever ends it, so none is left behind.

#include <sys/file.h>

#include <span>
#include <string>
#include <string_view>

namespace weir {

/// flock(2), or a test's.
using LockCall = int (*)(int descriptor, int operation);

struct LockedFile {
  int descriptor = -1;  ///< locked until it is closed; −1 if `error` is set
  int error = 0;        ///< errno. EWOULDBLOCK: another process, or this one, has the file
};

/// Opens the regular file `name` for writing, or creates it, and locks it. Does not wait, follow a
/// link or change what is in it. Before closing the descriptor the owner may remove
/// the file: whoever gets the lock then makes a new one.
[[nodiscard]] LockedFile open_locked(const std::string& name, LockCall lock = flock);

/// A file that a command writes, or reads and must not replace, with the flag or variable that
/// named it.
struct NamedPath {
  std::string name;
  std::string path;
};

/// Throws UsageError if two outputs are the same file, or an output is a file that the command
/// reads, which would be lost. Compares files by device and inode, through links. Ignores entries
/// without a path. `-` is standard output or input.
void require_different_files(std::span<const NamedPath> outputs,
                             std::span<const NamedPath> inputs = {});

/// Throws UsageError if an output goes where standard output or standard error go: its bytes would
/// mix with what is printed.
void require_apart_from_streams(const NamedPath& output);

class OutputFile {
 public:
  /// The file beside the target in which new contents wait to replace the old.
  enum class Beside {
    kAnyName,  ///< a new name each time: several processes may write the target at once
    /// `TARGET.partial`, for large contents: what a killed process left there is written over. Only
    /// one process at a time may write the target.
    kOneName,
  };

  /// Checks now that `path` can be written, so that nothing is computed in vain. Throws UsageError
  /// with `option`, the path and the reason. Creates no file beside the target before `commit` or
  /// `begin`, so a process killed before leaves nothing behind.
  ///
  /// Keeps a link, and replaces or creates its target. Writes to terminals, pipes, /dev/null and
  /// the file behind standard output or standard error in place. Never replaces or creates anything
  /// under /dev and /proc. `-` is standard output.
  OutputFile(std::string option, std::string path, Beside beside = Beside::kAnyName);
  ~OutputFile() { close_partial(); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Replaces the file's contents. Throws UsageError and keeps the old file if that fails.
  void commit(std::string_view contents);

  /// The same in pieces: `begin`, `append` each piece, `commit`. If one of them throws, or with
  /// `discard` instead of `commit`, nothing new is left and the old file stays.
  void begin();
  void append(std::string_view contents);
  /// Makes the new contents durable, then replaces the old. If the folder cannot be made durable
  /// this throws, too, although the file has the new contents.
  void commit();
  void discard() noexcept;

 private:
  void open_special();
  void use_stream(int stream);
  /// Opens a file beside the target as `descriptor_`.
  void open_partial();
  void close_partial() noexcept;
  /// Leaves nothing new, and throws.
  [[noreturn]] void fail(int error);

  const std::string option_;
  const std::string path_;
  const Beside beside_;
  std::string target_;   ///< the end of `path_`'s links; empty if it is written in place
  std::string partial_;  ///< while it exists
  int descriptor_ = -1;
};

}  // namespace weir
