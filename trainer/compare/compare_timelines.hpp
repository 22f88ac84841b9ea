#pragma once

// Records one run of each policy and makes a page of it.

#include <string>
#include <vector>

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

}  // namespace weir
