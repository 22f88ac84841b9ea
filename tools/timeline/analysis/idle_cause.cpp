#include "tools/timeline/analysis/idle_cause.hpp"

#include <algorithm>

namespace weir::timeline {
namespace {

constexpr std::array<std::string_view, kIdleCauses> kSentences{
    "The program waited until the device was done, and only then prepared more work.",
    "An allocation waited for memory: a larger budget or smaller batches help.",
    "A batch was not admitted: the budget had no room for it, or it was not its turn.",
    "A batch was not admitted: enough work was queued. The run-ahead target `auto` grows by such "
    "gaps.",
    "A launch was held back.",
    "No batch was begun: the program prepared its inputs or did other things.",
    "Work was submitted in time or one piece right after another, and began late.",
    "The recording does not say why."};

}  // namespace

std::string_view explain(IdleCause cause) noexcept {
  return kSentences[std::min(static_cast<std::size_t>(cause), kIdleCauses - 1)];
}

IdleCause cause_of(const GapFacts& facts) noexcept {
  const std::uint64_t before = facts.length - std::min(facts.length, facts.after_submission);
  if (facts.submission_known && facts.after_submission >= before) return IdleCause::kLaunch;
  const auto longest = std::ranges::max_element(facts.before_submission);
  if (*longest == 0) return IdleCause::kUnknown;
  return static_cast<IdleCause>(longest - facts.before_submission.begin());
}

}  // namespace weir::timeline
