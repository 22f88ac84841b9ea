#pragma once

// Records one run of each policy, and makes pages or a picture of them.

#include <string>
#include <vector>

#include "tools/program/picture/plot.hpp"
#include "trainer/compare/compare.hpp"

namespace weir {

/// Runs the job with these settings, whose timeline's file is set, and records it. Returns the
/// file.
[[nodiscard]] std::string record_run(const TrainSettings& settings, const std::string& label,
                                     const CompareHooks& hooks);

/// Returns the files that `record_policies` writes in `folder`: a timeline and a page for each
/// policy.
[[nodiscard]] std::vector<NamedPath> timeline_files(const Setting<std::string>& folder);

/// Creates `folder` if needed, then runs and records each policy once more, apart from the measured
/// runs. Returns the pages. Throws UsageError for what cannot be written.
std::vector<std::string> record_policies(const CompareSettings& settings,
                                         const Setting<std::string>& folder,
                                         const CompareHooks& hooks);

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
