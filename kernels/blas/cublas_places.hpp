#pragma once

/// @file
/// Where weir-train looks for cuBLAS. Needs no CUDA, so that `weir doctor` can look there too.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"

namespace weir {

/// Returns the names to open in turn: the loader's, then those in the toolkit of CUDA_PATH and of
/// CUDA_HOME. `major` is the toolkit's version at compile time: every toolkit of one major version
/// installs the same name.
[[nodiscard]] inline std::vector<std::string> cublas_places(const Environment& environment,
                                                            int major) {
  const std::string name = "libcublas.so." + std::to_string(major);
  std::vector<std::string> places{name};
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    const char* const folder = environment(variable);
    if (folder == nullptr || *folder == '\0') continue;
    places.push_back(std::string(folder) + "/lib64/" + name);
  }
  return places;
}

}  // namespace weir
