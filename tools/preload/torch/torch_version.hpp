#pragma once

// The version of an installed PyTorch, from the file torch/version.py. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace weir::preload {

/// Classes of one minor version have the same virtual functions, in the same order.
struct TorchVersion {
  int major = 0;
  int minor = 0;
  /// True for a released version or a candidate for it. False for a build from sources between two
  /// releases, such as 2.9.0a0 or 2.16.0.dev20260101, whose classes may be those of no release.
  bool is_release = false;
  std::string text;  ///< as the file has it: `2.15.0+cu132`

  friend bool operator==(const TorchVersion&, const TorchVersion&) = default;
};

/// Reads the line `__version__ = '2.15.0+cu132'`. Nothing if there is no such line, or it has no
/// major and minor number.
[[nodiscard]] std::optional<TorchVersion> parse_torch_version(std::string_view version_py);

/// Returns `2.15`.
[[nodiscard]] std::string major_minor(const TorchVersion& version);

}  // namespace weir::preload
