#include "trainer/report/claim.hpp"

#include <algorithm>

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
  const std::string text = "at " + format_number(throttled.ratio, 3) + " times its speed";
  if (throttled.runs < 2) return text + " (one pair, which is no measure)";
  // Pairs of a machine with nothing else to do differ by a tenth.
  const bool wide = throttled.ratio_high > 1.25 * throttled.ratio_low;
  return text + " (from " + format_number(throttled.ratio_low, 3) + " to " +
         format_number(throttled.ratio_high, 3) +
         (wide ? ": too wide to judge by; the machine is busy, or the runs are short)" : ")");
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

std::string claim_of(const CompareSettings& settings, const Comparison& comparison) {
  const PolicyFigures* const unbounded = figures_of(comparison, Policy::kUnbounded);
  std::string text = comparison.interrupted ? "In short, so far: " : "In short: ";
  text += of_throttled(settings, comparison, figures_of(comparison, Policy::kThrottled));
  if (unbounded != nullptr) {
    text += "; unbounded in the budget of " + format_budget(settings.train.pool.budget.value) +
            ": " + describe_outcome(unbounded->last);
  }
  return text + ".";
}

}  // namespace weir
