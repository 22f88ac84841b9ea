#include "trainer/report/claim.hpp"

#include <algorithm>

#include "scheduler/admission/policy.hpp"
#include "tools/program/numbers.hpp"

namespace weir {
namespace {

constexpr std::uint64_t kLeastPairs = 3;

/// Null if it did not run.
const PolicyFigures* figures_of(const Comparison& comparison, Policy policy) {
  const auto found =
      std::ranges::find(comparison.policies, to_string(policy), &PolicyFigures::name);
  return found == comparison.policies.end() || found->runs == 0 ? nullptr : &*found;
}

bool finished(const PolicyFigures& figures) {
  return figures.runs != 0 && figures.last.outcome == Outcome::kFinished && !diverged(figures.last);
}

/// Returns ` (75 times less)`, or how else the two compare.
std::string times_less(Bytes ours, Bytes theirs) {
  if (ours > theirs) return " (more)";
  if (ours.count == 0) return "";
  const double times = static_cast<double>(theirs.count) / static_cast<double>(ours.count);
  if (times < 1.05) return " (about as much)";
  return " (" + format_number(times, times < 9.95 ? 1 : 0) + " times less)";
}

std::string speed(const PolicyFigures& throttled) {
  if (!(throttled.ratio > 0)) return "at a speed that was not measured";
  if (throttled.runs < kLeastPairs) {
    return "at a speed that " + format_count(throttled.runs, "pair") + " cannot tell";
  }
  const std::string range = "(from " + format_number(throttled.ratio_low, 3) + " to " +
                            format_number(throttled.ratio_high, 3);
  if (tells_speed(throttled)) {
    return "at " + format_number(throttled.ratio, 3) + " times its speed " + range + ")";
  }
  return "at a speed that the pairs do not tell " + range +
         " times its speed: the machine is busy, or the runs are short)";
}

std::string weights(const Comparison& comparison) {
  if (comparison.finished_runs < 2) return "with no weights to compare";
  return comparison.identical ? "with bit-identical weights"
                              : "with weights that are NOT identical";
}

/// Memory and speed are of the same runs. Without a reference that finished there is nothing to
/// compare them with.
std::string beside_reference(const Comparison& comparison, const PolicyFigures& throttled) {
  const Bytes ours = throttled.last.pool.reserved.peak;
  std::string text = "throttled took at most " + format_bytes(ours);
  if (comparison.reference.runs == 0) return text;
  if (!finished(comparison.reference)) {
    return text + "; unbounded with all of the device's memory: " +
           describe_outcome(comparison.reference.last);
  }
  const Bytes theirs = comparison.reference.last.pool.reserved.peak;
  return text + " where unbounded run-ahead with enough memory took " + format_bytes(theirs) +
         times_less(ours, theirs) + ", " + speed(throttled) + ", " + weights(comparison);
}

std::string of_throttled(const CompareSettings& settings, const Comparison& comparison,
                         const PolicyFigures* throttled) {
  if (throttled == nullptr) return "throttled did not run";
  if (!finished(*throttled)) {
    return "throttled did not finish: " + describe_outcome(throttled->last);
  }
  std::string text = beside_reference(comparison, *throttled);
  if (!throttled->smallest_budget) return text;
  return text + "; it still finishes " + format_count(settings.short_batches, "batch", "es") +
         " in " + format_bytes(*throttled->smallest_budget);
}

}  // namespace

bool pairs_agree(const PolicyFigures& figures) noexcept {
  constexpr double kWidest = 1.25;  // pairs of an idle machine differ by a seventh
  return figures.ratio_high <= kWidest * figures.ratio_low;
}

bool tells_speed(const PolicyFigures& figures) noexcept {
  return figures.runs >= kLeastPairs && figures.ratio > 0 && pairs_agree(figures);
}

std::string claim_of(const CompareSettings& settings, const Comparison& comparison,
                     const std::string& subject) {
  const PolicyFigures* const unbounded = figures_of(comparison, Policy::kUnbounded);
  std::string text = subject + (comparison.interrupted ? ", so far: " : ": ");
  text += of_throttled(settings, comparison, figures_of(comparison, Policy::kThrottled));
  if (unbounded != nullptr) {
    text += "; unbounded in the budget of " + format_budget(settings.train.pool.budget.value) +
            ": " + describe_outcome(unbounded->last);
  }
  return text + ".";
}

}  // namespace weir
