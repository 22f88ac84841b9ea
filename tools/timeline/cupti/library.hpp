#pragma once

// libcupti, found and opened when a recording asks for it, never before.

#include <memory>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/timeline/cupti/abi.hpp"

namespace weir::timeline::cupti {

/// Where libcupti may lie.
struct Places {
  std::vector<std::string> loaded;  ///< names to look for among the libraries of the process
  std::vector<std::string> files;   ///< names and paths to open, best first
};

/// Policy: the copy that is already loaded, then the one that belongs to the CUDA runtime of the
/// process, then what the loader finds, then the toolkit. WEIR_CUPTI names the only one instead.
/// `runtimes`: paths of the CUDA runtimes that the process has loaded.
[[nodiscard]] Places cupti_places(const Environment& environment,
                                  const std::vector<std::string>& runtimes);
/// The paths of libcudart in this process.
[[nodiscard]] std::vector<std::string> loaded_runtimes();

/// An open libcupti. It stays open: its own thread may be inside it.
struct Library {
  std::string path;
  CommonCalls common;
  OlderCalls older;
  NewerCalls newer;
  bool has_older = false;  ///< every function that a recording cannot do without
  bool has_newer = false;  ///< the same
};

/// Opens the first that there is. Null where there is none; `why` then says so in one line.
[[nodiscard]] std::unique_ptr<Library> open_library(const Places& places, std::string& why);

}  // namespace weir::timeline::cupti
