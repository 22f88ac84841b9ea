#pragma once

// A private folder of this process.

#include <string>
#include <string_view>

#include "allocator/base/setting.hpp"

namespace weir {

/// A folder that only this user can read, removed with its contents.
class TemporaryFolder {
 public:
  /// Creates one whose name begins with `name`, in TMPDIR or /tmp. Throws UsageError if it cannot.
  TemporaryFolder(const Environment& environment, std::string_view name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Absolute.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace weir
