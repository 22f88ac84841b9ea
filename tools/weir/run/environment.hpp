#pragma once

// Computes the environment that preloads the library and selects the frameworks' allocator. Pure.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/weir/run/framework_allocator.hpp"

namespace weir::cli {

struct Preload {
  std::string library;       ///< its path
  std::string summary;       ///< for WEIR_SUMMARY
  bool batch_range = false;  ///< batches are marked by NVTX ranges
  Choice allocator = {};
  std::vector<Variable> flags;  ///< set by flags
};

struct Prepared {
  std::vector<Variable> variables;  ///< to be set, each name once
  std::string allocator;            ///< for people: the frameworks' allocator
};

/// Returns the changes to `environment`. Framework settings of the user stay.
[[nodiscard]] Prepared environment_for(const Preload& preload, const Environment& environment);

/// Returns `current` with the changes, as `NAME=value` for execve.
[[nodiscard]] std::vector<std::string> with_variables(const char* const* current,
                                                      const std::vector<Variable>& variables);

}  // namespace weir::cli
