#pragma once

// What each policy looks like: a run of each, recorded, and made into a page.

#include <string>
#include <vector>

#include "trainer/compare/compare.hpp"

namespace weir {

/// The policies, in the order of the comparison's table.
[[nodiscard]] std::vector<Policy> compared_policies();

/// The files that `record_policies` writes in `folder`: a timeline and a page for each policy.
[[nodiscard]] std::vector<NamedPath> timeline_files(const Setting<std::string>& folder);

/// Makes `folder` if it is not there, runs each policy once more and records it. Runs that are
/// measured stay apart from these. Returns the pages. UsageError for what cannot be written.
std::vector<std::string> record_policies(const CompareSettings& settings,
                                         const Setting<std::string>& folder,
                                         const CompareHooks& hooks);

}  // namespace weir
