#include "tools/timeline/analysis/idle_cause.hpp"

#include <algorithm>

namespace weir::timeline {
namespace {

struct Words {
  std::string_view word;
  std::string_view sentence;
};
constexpr std::array<Words, kIdleCauses> kWords{{
    {"barrier", "The program waited until the device was done, and only then prepared more work."},
    {"memory", "An allocation waited for memory: a larger budget or smaller batches help."},
    {"budget", "A batch was not admitted: the budget had no room for it, or it was not its turn."},
    {"throttled",
     "A batch was not admitted: enough work was queued. The run-ahead target `auto` grows by such "
     "gaps."},
    {"pace", "A launch was held back."},
    {"loader", "No batch was begun: the program prepared its inputs or did other things."},
    {"launch", "Work was submitted in time or one piece right after another, and began late."},
    {"unknown", "The recording does not say why."},
}};

}  // namespace

std::string_view to_string(IdleCause cause) noexcept {
  return kWords[std::min(static_cast<std::size_t>(cause), kIdleCauses - 1)].word;
}

std::string_view explain(IdleCause cause) noexcept {
  return kWords[std::min(static_cast<std::size_t>(cause), kIdleCauses - 1)].sentence;
}

IdleCause cause_of(const GapFacts& facts) noexcept {
  const std::uint64_t before = facts.length - std::min(facts.length, facts.after_submission);
  if (facts.submission_known && facts.after_submission >= before) return IdleCause::kLaunch;
  const auto longest = std::ranges::max_element(facts.before_submission);
  if (*longest == 0) return IdleCause::kUnknown;
  return static_cast<IdleCause>(longest - facts.before_submission.begin());
}

}  // namespace weir::timeline
