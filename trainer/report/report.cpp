#include "trainer/report/report.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/table.hpp"
#include "trainer/report/run_figures.hpp"

namespace weir {
namespace {

using nlohmann::json;
using run_figures::caused_idle;
using run_figures::memory_json;
using run_figures::percent;
using run_figures::result_json;
using run_figures::Rows;
using run_figures::seconds;
using run_figures::stalls_by_cause;
using run_figures::static_memory;
using run_figures::target;
using run_figures::timeline_json;

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

std::string accuracy(const TrainResult& r) {
  if (!r.test_accuracy) return "-";
  return percent(*r.test_accuracy) + " of " + format_count(r.test_images, "test image");
}

/// The figures that a training loop without Weir has.
json plain_json(const Comparison& comparison) {
  if (!comparison.plain) return {{"left_out", comparison.why_no_plain}};
  const PolicyFigures& f = *comparison.plain;
  json j{{"policy", f.name}, {"runs", f.runs}};
  if (f.runs == 0) return j;
  const TrainResult& r = f.last;
  j["batches_per_second"] = f.batches_per_second;
  j["ratio_to_reference"] = f.ratio;
  j["ratio_low"] = f.ratio_low;
  j["ratio_high"] = f.ratio_high;
  j["host_us"] = 1e6 * f.host_seconds;
  j["last_run"] = {{"outcome", describe_outcome(r)},
                   {"seconds", r.seconds},
                   {"batches", r.batches},
                   {"peak_reserved_bytes", r.pool.reserved.peak.count},
                   {"staging_bytes", r.staging.count}};
  if (r.mean_loss) j["last_run"]["mean_loss"] = *r.mean_loss;
  if (!r.report.empty()) j["last_run"]["report"] = r.report;
  return j;
}

json figures_json(const PolicyFigures& f) {
  json j{{"policy", f.name}, {"runs", f.runs}};
  if (f.runs != 0) {
    j["batches_per_second"] = f.batches_per_second;
    j["ratio_to_reference"] = f.ratio;
    j["ratio_low"] = f.ratio_low;
    j["ratio_high"] = f.ratio_high;
    j["idle_share"] = f.idle_share;
    j["host_us"] = 1e6 * f.host_seconds;
    j["last_run"] = result_json(f.last);
  }
  if (f.to_plain) {
    j["to_plain"] = {
        {"ratio", f.to_plain->median}, {"low", f.to_plain->low}, {"high", f.to_plain->high}};
  }
  if (f.smallest_budget) j["smallest_budget_bytes"] = f.smallest_budget->count;
  return j;
}

std::string spread(const Ratio& r) {
  return format_number(r.median, 3) + " (" + format_number(r.low, 3) + " to " +
         format_number(r.high, 3) + ")";
}

std::string speed(const PolicyFigures& f) {
  return format_number(f.batches_per_second, f.batches_per_second < 100 ? 2 : 0);
}

std::string ratio(const PolicyFigures& f) {
  return f.ratio > 0 ? spread({f.ratio, f.ratio_low, f.ratio_high}) : "-";
}

std::vector<std::string> row_not_run(const PolicyFigures& f) {
  return {f.name, "-", "-", "-", "-", "-", "-", "-", "-", "not run"};
}

/// Without Weir there are no holds or stalls, and the device's idle time is unknown.
std::vector<std::string> plain_row(const PolicyFigures& f) {
  if (f.runs == 0) return row_not_run(f);
  return {f.name,   speed(f),
          ratio(f), format_bytes(f.last.pool.reserved.peak),
          "-",      format_bytes(f.last.staging),
          "-",      "-",
          "-",      describe_outcome(f.last)};
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
  text = "host time per batch, us: " + text + "\n";
  for (const PolicyFigures& f : comparison.policies) {
    if (f.to_plain) text += f.name + " to plain: " + spread(*f.to_plain) + "\n";
  }
  return text;
}

/// Returns what holding back did in the last run of `throttled`. Empty for any other policy.
std::string throttling(const RunAhead& chosen, const PolicyFigures& f) {
  if (f.runs == 0 || f.name != to_string(Policy::kThrottled)) return "";
  return f.name + ", last run: stalls by cause: " + stalls_by_cause(f.last) +
         "\n  throttle-caused idle " + caused_idle(f.last) + "; run-ahead target " +
         target(chosen, f.last) + "; " + format_count(f.last.admission.forced, "forced admission") +
         "\n";
}

std::vector<std::string> row(const PolicyFigures& f, bool is_reference) {
  if (f.runs == 0) return row_not_run(f);
  const TrainResult& r = f.last;
  return {f.name,
          speed(f),
          is_reference ? "1" : ratio(f),
          format_bytes(r.pool.reserved.peak),
          format_bytes(r.pool.held.peak),
          format_bytes(r.staging),
          std::to_string(r.stalls.count),
          seconds(r.stalls.total),
          percent(f.idle_share),
          describe_outcome(r)};
}

}  // namespace

std::string format_run(const TrainSettings& settings, const TrainResult& result) {
  Rows rows{{"policy", std::string(to_string(settings.policy.policy.value))},
            {"result", describe_outcome(result)},
            {"batches", std::to_string(result.batches)},
            {"batches/s", format_number(result.batches_per_second(), 2)},
            {"host per batch", format_number(1e6 * result.host_seconds, 1) + " us"},
            {"device idle", percent(result.idle_share)},
            {"peak reserved", format_bytes(result.pool.reserved.peak)},
            {"peak held", format_bytes(result.pool.held.peak)},
            {"host staging", format_bytes(result.staging)},
            {"most in flight", format_count(result.admission.most_submitted, "batch", "es")}};
  if (result.static_memory) {
    rows.push_back({"static memory", static_memory(*result.static_memory)});
  }
  run_figures::add_throttling(rows, settings.policy, result);
  if (result.mean_loss) rows.push_back({"mean loss", format_number(*result.mean_loss, 6)});
  if (settings.data != nullptr) rows.push_back({"test accuracy", accuracy(result)});
  return format_table(rows);
}

std::string run_json(const TrainSettings& settings, const TrainResult& result) {
  const json j{{"weir", kVersion},
               {"settings", settings_json(settings.lines())},
               {"policy", std::string(to_string(settings.policy.policy.value))},
               {"result", result_json(result)},
               {"timeline", timeline_json(result)}};
  return json_text(j);
}

std::string format_predict(const PredictSettings& settings, const TrainResult& result) {
  const double speed =
      result.seconds > 0 ? static_cast<double>(result.test_images) / result.seconds : 0;
  Rows rows{{"policy", std::string(to_string(settings.train.policy.policy.value))},
            {"result", describe_outcome(result)},
            {"images", std::to_string(result.test_images)},
            {"images/s", format_number(speed, 0)},
            {"device idle", percent(result.idle_share)},
            {"peak reserved", format_bytes(result.pool.reserved.peak)},
            {"peak held", format_bytes(result.pool.held.peak)},
            {"host staging", format_bytes(result.staging)},
            {"most in flight", format_count(result.admission.most_submitted, "batch", "es")}};
  run_figures::add_throttling(rows, settings.train.policy, result);
  rows.push_back({"test accuracy", accuracy(result)});
  return format_table(rows);
}

std::string predict_json(const PredictSettings& settings, const TrainResult& result) {
  json figures = memory_json(result);
  figures["images_per_second"] =
      result.seconds > 0 ? static_cast<double>(result.test_images) / result.seconds : 0;
  const json j{{"weir", kVersion},
               {"settings", settings_json(settings.lines())},
               {"policy", std::string(to_string(settings.train.policy.policy.value))},
               {"result", std::move(figures)}};
  return json_text(j);
}

std::string format_comparison(const CompareSettings& settings, const Comparison& comparison) {
  const TrainSettings& t = settings.train;
  std::string text = "MLP " + format_widths(t.widths) + ", batches of " +
                     std::to_string(t.batch_size.value) + " " + how_made(t.inputs.value) + ", " +
                     format_count(t.batches.value, "batch", "es") + " a run, budget " +
                     format_budget(t.pool.budget.value) + ", " +
                     format_count(settings.rounds.value, "pair") +
                     " with the reference (unbounded, enough memory)\n\n";
  std::vector<std::vector<std::string>> rows{
      {"policy", "batches/s", "to reference (spread)", "peak reserved", "peak held", "staging",
       "stalls", "stalled", "idle", "result"},
      row(comparison.reference, true)};
  if (comparison.plain) rows.push_back(plain_row(*comparison.plain));
  for (const PolicyFigures& figures : comparison.policies) rows.push_back(row(figures, false));
  text += format_table(rows) + "\n" + host_times(settings, comparison);
  text += "weights after " + format_count(t.batches.value, "batch", "es") + ": " +
          (comparison.finished_runs < 2 ? "fewer than two runs finished, nothing to compare"
           : comparison.identical       ? "bit-identical in all "
                                        : "NOT identical in the ") +
          (comparison.finished_runs < 2
               ? std::string()
               : std::to_string(comparison.finished_runs) + " runs that finished") +
          "\nsmallest budget that finishes:";
  bool first = true;
  for (const PolicyFigures& f : comparison.policies) {
    text += (first ? " " : ", ") + f.name + " " +
            (f.smallest_budget ? format_bytes(*f.smallest_budget)
             : f.searched      ? std::string("not found")
                               : std::string("not searched"));
    if (f.name == "unbounded" && f.smallest_budget) text += " (the reference's peak)";
    first = false;
  }
  text += "\n";
  for (const PolicyFigures& f : comparison.policies)
    text += throttling(t.policy.run_ahead.value, f);
  if (comparison.interrupted) text += "interrupted: these are the figures so far\n";
  return text;
}

std::string comparison_json(const CompareSettings& settings, const Comparison& comparison) {
  json policies = json::array();
  for (const PolicyFigures& figures : comparison.policies)
    policies.push_back(figures_json(figures));
  const json j{{"weir", kVersion},
               {"settings", settings_json(settings.lines())},
               {"rounds", settings.rounds.value},
               {"reference", figures_json(comparison.reference)},
               {"plain", plain_json(comparison)},
               {"policies", std::move(policies)},
               {"weights_identical", comparison.identical},
               {"finished_runs", comparison.finished_runs},
               {"interrupted", comparison.interrupted}};
  return json_text(j);
}

}  // namespace weir
