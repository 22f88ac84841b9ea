#include <algorithm>
#include <functional>
#include <utility>

#include "scheduler/admission/policy.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "trainer/report/report.hpp"
#include "trainer/report/run_figures.hpp"

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

using Lines = std::vector<std::reference_wrapper<const PolicyFigures>>;

std::string how_made(InputKind inputs) {
  switch (inputs) {
    case InputKind::kHost:
      return "made on the way";
    case InputKind::kRing:
      return "made beforehand";
    case InputKind::kDrawn:
      return "drawn on the device";
  }
  return "unknown";
}

std::string from_to(double low, double high) {
  return format_number(low, 3) + " to " + format_number(high, 3);
}

std::string speed(double batches_per_second) {
  return format_number(batches_per_second, batches_per_second < 100 ? 2 : 0);
}

std::string heading(const CompareSettings& settings) {
  const TrainSettings& t = settings.train;
  return wrapped("MLP " + format_widths(t.widths) + ", batches of " +
                     std::to_string(t.batch_size.value) + " " + how_made(t.inputs.value) + ", " +
                     format_count(t.batches.value, "batch", "es") + " a run, budget " +
                     format_budget(t.pool.budget.value) + ", " +
                     format_count(settings.rounds.value, "pair") +
                     " with the reference (unbounded, enough memory)",
                 2);
}

/// Makes the columns. A policy that did not run has none of the figures.
class Columns {
 public:
  Columns(const CompareSettings& settings, const Comparison& comparison, Lines lines)
      : settings_(settings), comparison_(comparison), lines_(std::move(lines)) {}

  [[nodiscard]] std::string table(bool wide) const {
    ReportTable table;
    table.words({"policy", "how the run-ahead is held back"},
                cells_of(lines_, [](const PolicyFigures& f) { return f.name; }));
    if (any_search()) {
      const std::string batches = format_count(settings_.short_batches, "batch", "es");
      table.bytes(
          {"needs", "smallest budget in which " + batches +
                        " finish (unbounded: what it takes without a budget)"},
          sizes([&](const auto& f) { return is_reference(f) ? std::nullopt : f.smallest_budget; }));
    }
    table.bytes({"peak", "most memory taken from the device"},
                sizes([](const auto& f) { return std::optional(f.last.pool.reserved.peak); }));
    add_speed(table);
    add_details(table);
    table.words({"result", "how the run ended in its budget"},
                cells_of(lines_,
                         [](const PolicyFigures& f) {
                           return f.runs == 0 ? std::string("not run") : describe_outcome(f.last);
                         }),
                Long::kWrap);
    return table.format(wide);
  }

 private:
  [[nodiscard]] bool is_reference(const PolicyFigures& f) const {
    return &f == &comparison_.reference;
  }
  /// Without Weir there are no holds or stalls, and the device's idle time is unknown.
  [[nodiscard]] bool is_plain(const PolicyFigures& f) const {
    return comparison_.plain && &f == &*comparison_.plain;
  }
  [[nodiscard]] bool any_search() const {
    return std::ranges::any_of(
        comparison_.policies, [](const PolicyFigures& f) { return f.smallest_budget.has_value(); });
  }

  template <typename Size>
  [[nodiscard]] std::vector<std::optional<Bytes>> sizes(const Size& size) const {
    return cells_of(lines_, [&](const PolicyFigures& f) -> std::optional<Bytes> {
      if (f.runs == 0) return std::nullopt;
      return size(f);
    });
  }
  template <typename Text>
  [[nodiscard]] std::vector<std::string> texts(const Text& text) const {
    return cells_of(
        lines_, [&](const PolicyFigures& f) { return f.runs == 0 ? std::string("-") : text(f); });
  }
  /// `-` for the loop without Weir.
  template <typename Text>
  [[nodiscard]] std::vector<std::string> of_weir(const Text& text) const {
    return texts([&](const PolicyFigures& f) { return is_plain(f) ? std::string("-") : text(f); });
  }

  [[nodiscard]] std::string speed_words() const {
    const PolicyFigures& reference = comparison_.reference;
    const std::string own =
        reference.runs == 0 ? "" : " (" + speed(reference.batches_per_second) + ")";
    const bool all_agree = std::ranges::all_of(lines_, [&](const PolicyFigures& f) {
      return f.runs == 0 || is_reference(f) || pairs_agree(f);
    });
    return "batches a second over the reference's" + own + ", median" +
           (all_agree ? "" : "; unclear where the fastest pair has 1.25 times the slowest's");
  }

  void add_speed(ReportTable& table) const {
    table.numbers({"speed", speed_words()}, texts([&](const PolicyFigures& f) {
                    if (is_reference(f) && f.last.outcome == Outcome::kFinished) {
                      return std::string("1.000");
                    }
                    if (!(f.ratio > 0)) return std::string("-");
                    return pairs_agree(f) ? format_number(f.ratio, 3) : "unclear";
                  }));
    table.numbers({"lowest to highest", "speed of the pairs"}, texts([&](const PolicyFigures& f) {
                    const bool known = f.ratio > 0 && !is_reference(f);
                    return known ? from_to(f.ratio_low, f.ratio_high) : "-";
                  }));
  }

  void add_details(ReportTable& table) const {
    const auto wide = Shown::kWide;
    table.numbers({"batches/s", "batches a second, median", wide},
                  texts([](const PolicyFigures& f) { return speed(f.batches_per_second); }));
    table.bytes({"held", "most memory in use", wide}, sizes([&](const auto& f) {
                  return is_plain(f) ? std::nullopt : std::optional(f.last.pool.held.peak);
                }));
    table.bytes({"staging", "host memory for copies", wide},
                sizes([](const auto& f) { return std::optional(f.last.staging); }));
    table.numbers(
        {"stalls", "times that the host was held back", wide},
        of_weir([](const PolicyFigures& f) { return std::to_string(f.last.stalls.count); }));
    table.times({"stalled", "time that it was held back", wide},
                cells_of(lines_, [&](const PolicyFigures& f) -> std::optional<double> {
                  if (f.runs == 0 || is_plain(f)) return std::nullopt;
                  return static_cast<double>(f.last.stalls.total.count());
                }));
    table.numbers(
        {"idle %", "of the time, the device had nothing to do", wide},
        of_weir([](const PolicyFigures& f) { return format_number(100 * f.idle_share, 1); }));
  }

  const CompareSettings& settings_;
  const Comparison& comparison_;
  const Lines lines_;
};

/// Says for which policies the search of the smallest budget has no result.
std::string searches(const CompareSettings& settings, const Comparison& comparison) {
  if (!settings.search) return "";
  std::string without;
  bool searched = false;
  for (const PolicyFigures& f : comparison.policies) {
    searched = searched || f.searched || f.smallest_budget;
    if (f.smallest_budget) continue;
    without +=
        (without.empty() ? "" : ", ") + f.name + (f.searched ? " not found" : " not searched");
  }
  if (!searched) return "smallest budgets: not searched\n";
  return without.empty() ? "" : wrapped("smallest budgets: " + without, 2);
}

/// Returns the host times of all runs, and throttled's compared with the loop without Weir. Empty
/// if neither that nor static memory was to run.
std::string host_times(const CompareSettings& settings, const Comparison& comparison) {
  if (!comparison.plain && !settings.with_static) return "";
  std::string text;
  const auto add = [&](const PolicyFigures& f) {
    if (f.runs == 0) return;
    text += (text.empty() ? "" : ", ") + f.name + " " + format_number(1e6 * f.host_seconds, 1);
  };
  add(comparison.reference);
  if (comparison.plain) add(*comparison.plain);
  for (const PolicyFigures& f : comparison.policies) add(f);
  if (text.empty()) return "";
  text = wrapped("host time per batch, us: " + text, 2);
  for (const PolicyFigures& f : comparison.policies) {
    if (!f.to_plain) continue;
    text += f.name + " to plain: " + format_number(f.to_plain->median, 3) + " (" +
            from_to(f.to_plain->low, f.to_plain->high) + ")\n";
  }
  return text;
}

/// Returns what holding back did in the last run of `throttled`. Empty for any other policy.
std::string throttling(const RunAhead& chosen, const PolicyFigures& f) {
  if (f.runs == 0 || f.name != to_string(Policy::kThrottled)) return "";
  return wrapped(f.name + ", last run: stalls by cause: " + run_figures::stalls_by_cause(f.last),
                 2) +
         wrapped("  throttle-caused idle " + run_figures::caused_idle(f.last) +
                     "; run-ahead target " + run_figures::target(chosen, f.last) + "; " +
                     format_count(f.last.admission.forced, "forced admission"),
                 2);
}

std::string same_weights(const CompareSettings& settings, const Comparison& comparison) {
  const std::string after =
      "weights after " + format_count(settings.train.batches.value, "batch", "es") + ": ";
  if (comparison.finished_runs < 2) {
    return after + "fewer than two runs finished, nothing to compare\n";
  }
  return after + (comparison.identical ? "bit-identical in all " : "NOT identical in the ") +
         std::to_string(comparison.finished_runs) + " runs that finished\n";
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

std::string format_comparison(const CompareSettings& settings, const Comparison& comparison,
                              bool wide) {
  Lines lines{comparison.reference};
  if (comparison.plain) lines.emplace_back(*comparison.plain);
  for (const PolicyFigures& figures : comparison.policies) lines.emplace_back(figures);
  std::string text = heading(settings) + "\n" + Columns(settings, comparison, lines).table(wide) +
                     "\n" + host_times(settings, comparison) + same_weights(settings, comparison) +
                     searches(settings, comparison);
  for (const PolicyFigures& f : comparison.policies) {
    if (wide) text += throttling(settings.train.policy.run_ahead.value, f);
  }
  if (comparison.interrupted) text += "interrupted: these are the figures so far\n";
  return text + "\n" + wrapped(claim_of(settings, comparison), 2);
}

}  // namespace weir
