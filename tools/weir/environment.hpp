#pragma once

// What a program's environment needs so that the library is in it and frameworks leave memory to
// it. Pure.

#include <string>
#include <vector>

#include "allocator/setting.hpp"

namespace weir::cli {

struct Variable {
  std::string name;
  std::string value;

  friend bool operator==(const Variable&, const Variable&) = default;
};

struct Preload {
  std::string library;          ///< its path
  std::string summary;          ///< for WEIR_SUMMARY
  bool batch_range = false;     ///< batches are marked by NVTX ranges
  std::vector<Variable> flags;  ///< what flags set
};

struct Prepared {
  std::vector<Variable> variables;  ///< to be set, each name once
  std::vector<std::string> notes;   ///< for people: what was left as it is though it should not be
};

/// What has to change in `environment`. What the user set for a framework stays.
[[nodiscard]] Prepared environment_for(const Preload& preload, const Environment& environment);

/// `NAME=value` of all of `current` with the changes in it, for execve.
[[nodiscard]] std::vector<std::string> with_variables(const char* const* current,
                                                      const std::vector<Variable>& variables);

}  // namespace weir::cli
