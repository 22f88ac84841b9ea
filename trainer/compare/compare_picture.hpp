#pragma once

// Draws the memory of each policy over time.

#include <string>
#include <vector>

#include "tools/program/picture/plot.hpp"
#include "trainer/compare/compare.hpp"

namespace weir {

/// The memory that one run reserved over time, from its first allocation on.
struct MemoryCurve {
  std::string name;  ///< reference, or the policy's
  std::vector<picture::Point> reserved;
};

/// Runs and records the reference and each policy once more, apart from the measured runs, in a
/// temporary folder. The list ends early when stopped. Throws UsageError if nothing can be written.
[[nodiscard]] std::vector<MemoryCurve> record_curves(const CompareSettings& settings,
                                                     const CompareHooks& hooks);

/// Draws the curves as SVG, with the figures of the measured runs in their keys: all of them up to
/// the highest peak, and below it the policies up to the budget.
[[nodiscard]] std::string comparison_svg(const CompareSettings& settings,
                                         const Comparison& comparison,
                                         const std::vector<MemoryCurve>& curves);

}  // namespace weir
