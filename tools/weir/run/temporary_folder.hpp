#pragma once

#include <string>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// A private folder of this process, removed with its contents.
class TemporaryFolder {
 public:
  /// Creates it in TMPDIR or /tmp. Throws UsageError if it cannot.
  explicit TemporaryFolder(const Environment& environment);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace weir::cli
