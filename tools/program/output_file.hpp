#pragma once

// A file that is written whole or not at all: what was there stays until the new contents are
// safely beside it.

#include <span>
#include <string>
#include <string_view>

namespace weir {

/// A file that a command writes, or reads and must not replace, by the flag or variable that named
/// it.
struct NamedPath {
  std::string name;
  std::string path;
};

/// UsageError when two outputs are one file, or an output is a file that the command reads: it
/// would be lost without a word. Files are told by device and inode, whatever links lead to them.
/// Those without a path are not there; `-` is standard output, or standard input.
void require_different_files(std::span<const NamedPath> outputs,
                             std::span<const NamedPath> inputs = {});

/// UsageError when an output goes where standard output or standard error go: its bytes would lie
/// among what is printed.
void require_apart_from_streams(const NamedPath& output);

class OutputFile {
 public:
  /// Checks now that `path` can be written, so that nothing is computed in vain. UsageError naming
  /// `option`, the path and why not. Until `commit` nothing lies beside the file: a process that is
  /// killed leaves nothing behind.
  ///
  /// A link stays and what it points to is replaced, or made where it does not exist. What is no
  /// regular file (a terminal, a pipe, /dev/null) and the file that standard output or standard
  /// error go to are written to and never replaced. Nothing is made or replaced under /dev and
  /// /proc. `-` is standard output.
  OutputFile(std::string option, std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Replaces the file's contents. UsageError when they cannot be written; the old file stays.
  void commit(std::string_view contents);

 private:
  /// Writes to where the standard stream goes.
  void use_stream(int stream);
  /// A file beside the target, open in `descriptor_`.
  void open_partial();
  void close_partial() noexcept;
  void write_all(std::string_view contents) const;
  [[noreturn]] void fail(int error) const;

  const std::string option_;
  const std::string path_;
  std::string target_;   ///< the end of `path_`'s links; empty when it is written to as it is
  std::string partial_;  ///< while it exists
  int descriptor_ = -1;
};

}  // namespace weir
