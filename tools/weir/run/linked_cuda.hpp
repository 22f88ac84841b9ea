#pragma once

// How a program is linked with CUDA, by the names in its file. Pure, except that they read files.

#include <string>
#include <string_view>

#include "allocator/base/setting.hpp"

namespace weir::cli {

struct LinkedCuda {
  bool cuda = false;            ///< uses CUDA by itself
  bool static_runtime = false;  ///< has CUDA's runtime in it
  bool framework = false;       ///< is linked with Python or a framework
};

/// Returns what the bytes of a program's file say.
[[nodiscard]] LinkedCuda linked_cuda_in(std::string_view file);
/// The same of a file; nothing of one that cannot be read.
[[nodiscard]] LinkedCuda linked_cuda(const std::string& path);

/// Whether LD_LIBRARY_PATH leads to the stand-in for the driver.
[[nodiscard]] bool finds_standin(const Environment& environment);

/// Returns why that program found no CUDA, and the remedy; empty if nothing is known.
[[nodiscard]] std::string no_cuda_hint(const LinkedCuda& linked, bool on_standin);

}  // namespace weir::cli
