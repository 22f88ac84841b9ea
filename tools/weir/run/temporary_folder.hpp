#pragma once

#include <string>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// A folder for this process alone, removed with all that is in it.
class TemporaryFolder {
 public:
  /// In TMPDIR, or /tmp. UsageError where it cannot be made.
  explicit TemporaryFolder(const Environment& environment);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace weir::cli
