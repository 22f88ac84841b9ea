#pragma once

// Finds and opens libcupti when a recording needs it, never before.

#include <memory>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/timeline/cupti/abi.hpp"

namespace weir::timeline::cupti {

/// Where to look for libcupti.
struct Places {
  std::vector<std::string> loaded;  ///< names to look for among the process's loaded libraries
  std::vector<std::string> files;   ///< names and paths to open, best first
};

/// Policy: first the copy that is loaded, then the one of the process's CUDA runtime, then the
/// loader's, then the toolkit's. WEIR_CUPTI names the only candidate instead. `runtimes`: paths of
/// the process's loaded CUDA runtimes.
[[nodiscard]] Places cupti_places(const Environment& environment,
                                  const std::vector<std::string>& runtimes);
/// Returns the paths of libcudart in this process.
[[nodiscard]] std::vector<std::string> loaded_runtimes();

/// An open libcupti. It is never closed, because its own thread may run in it.
struct Library {
  std::string path;
  CommonCalls common;
  OlderCalls older;
  NewerCalls newer;
  bool has_older = false;  ///< all functions that a recording requires
  bool has_newer = false;  ///< likewise
};

/// Opens the first available one. Returns null if there is none, with the reason in `why`, in one
/// line.
[[nodiscard]] std::unique_ptr<Library> open_library(const Places& places, std::string& why);

}  // namespace weir::timeline::cupti
