#include "trainer/report/claim.hpp"

#include <algorithm>
#include <cmath>

#include "scheduler/admission/policy.hpp"
#include "tools/program/numbers.hpp"

namespace weir {
namespace {

/// Null if it did not run.
const PolicyFigures* figures_of(const Comparison& comparison, Policy policy) {
  const auto found =
      std::ranges::find(comparison.policies, to_string(policy), &PolicyFigures::name);
  return found == comparison.policies.end() || found->runs == 0 ? nullptr : &*found;
}

/// Returns ` (75 times less)`, or that it is no less.
std::string times_less(Bytes ours, Bytes theirs) {
  if (ours >= theirs) return " (no less)";
  const double times = static_cast<double>(theirs.count) / static_cast<double>(ours.count);
  return " (" + format_number(times, times < 9.95 ? 1 : 0) + " times less)";
}

std::string memory(const Comparison& comparison, const PolicyFigures& throttled,
                   const PolicyFigures* unbounded) {
  if (throttled.smallest_budget && unbounded != nullptr && unbounded->smallest_budget) {
    const Bytes ours = *throttled.smallest_budget;
    const Bytes theirs = *unbounded->smallest_budget;
    return "throttled finishes in " + format_bytes(ours) + " where unbounded run-ahead needs " +
           format_bytes(theirs) + times_less(ours, theirs);
  }
  const Bytes ours = throttled.last.pool.reserved.peak;
  if (comparison.reference.runs == 0) return "throttled reserved at most " + format_bytes(ours);
  const Bytes theirs = comparison.reference.last.pool.reserved.peak;
  return "throttled reserved at most " + format_bytes(ours) +
         " where unbounded run-ahead with enough memory reserved " + format_bytes(theirs) +
         times_less(ours, theirs);
}

std::string speed(const PolicyFigures& throttled) {
  if (!(throttled.ratio > 0)) return "at a speed that was not measured";
  constexpr double kSame = 0.03;
  const std::string ratio = format_number(throttled.ratio, 3);
  const std::string spread = "from " + format_number(throttled.ratio_low, 3) + " to " +
                             format_number(throttled.ratio_high, 3);
  if (std::abs(throttled.ratio - 1) <= kSame) {
    return "at the same speed (" + ratio + ", " + spread + ")";
  }
  return "at " + ratio + " times its speed (" + spread + ")";
}

std::string weights(const Comparison& comparison) {
  if (comparison.finished_runs < 2) return "with no weights to compare";
  return comparison.identical ? "with bit-identical weights"
                              : "with weights that are NOT identical";
}

}  // namespace

std::string claim_of(const CompareSettings& settings, const Comparison& comparison) {
  const PolicyFigures* const throttled = figures_of(comparison, Policy::kThrottled);
  const PolicyFigures* const unbounded = figures_of(comparison, Policy::kUnbounded);
  std::string text = "In short: ";
  if (throttled == nullptr) {
    text += "throttled did not run";
  } else if (throttled->last.outcome != Outcome::kFinished) {
    text += "throttled did not finish: " + describe_outcome(throttled->last);
  } else {
    text += memory(comparison, *throttled, unbounded) + ", " + speed(*throttled) + ", " +
            weights(comparison);
  }
  if (unbounded != nullptr) {
    text += "; unbounded in the budget of " + format_budget(settings.train.pool.budget.value) +
            ": " + describe_outcome(unbounded->last);
  }
  return text + ".";
}

}  // namespace weir
