#pragma once

#include <filesystem>
#include <system_error>

namespace weir {

/// Whether there is anything at `path` that this process can see.
[[nodiscard]] inline bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace weir
