#pragma once

// A file that is written whole or not at all: what was there stays until the new contents are
// safely beside it.

#include <string>
#include <string_view>

namespace weir {

class OutputFile {
 public:
  /// Checks now that `path` can be written, so that nothing is computed in vain. UsageError naming
  /// `option`, the path and why not.
  OutputFile(std::string option, std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Replaces the file's contents. UsageError when they cannot be written; the old file stays.
  void commit(std::string_view contents);

 private:
  [[noreturn]] void fail(int error) const;

  const std::string option_;
  const std::string path_;
  std::string partial_;  ///< beside `path_`; empty when `path_` is no regular file
  int descriptor_ = -1;
};

}  // namespace weir
