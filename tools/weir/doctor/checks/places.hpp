#pragma once

// How remedies name what lies beside this program. No other file of the checks names a path of
// ours: whoever installed a package has no clone.

#include <string>

#include "tools/weir/doctor/facts.hpp"

namespace weir::cli::doctor {

/// Returns how to find the page, such as `environment.md`: its path where it is here.
[[nodiscard]] std::string page(const Places& places, const std::string& name);

/// Returns what makes a plug for a PyTorch that has none.
[[nodiscard]] std::string build_a_plug(const Places& places);

}  // namespace weir::cli::doctor
