#pragma once

// What a program's environment needs so that the library is in it, and frameworks allocate as asked
// for. Pure.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/weir/run/framework_allocator.hpp"
#include "tools/weir/run/variable.hpp"

namespace weir::cli {

struct Preload {
  std::string library;       ///< its path
  std::string summary;       ///< for WEIR_SUMMARY
  bool batch_range = false;  ///< batches are marked by NVTX ranges
  AllocatorMode allocator = AllocatorMode::kFramework;
  std::vector<Variable> flags;  ///< what flags set
};

struct Prepared {
  std::vector<Variable> variables;  ///< to be set, each name once
  std::string allocator;            ///< for people: which one the frameworks use
};

/// What has to change in `environment`. What the user set for a framework stays.
[[nodiscard]] Prepared environment_for(const Preload& preload, const Environment& environment);

/// `NAME=value` of all of `current` with the changes in it, for execve.
[[nodiscard]] std::vector<std::string> with_variables(const char* const* current,
                                                      const std::vector<Variable>& variables);

}  // namespace weir::cli
