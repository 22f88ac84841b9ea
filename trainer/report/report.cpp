#include "trainer/report/report.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/table.hpp"

namespace weir {
namespace {

using nlohmann::json;

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string percent(double share) { return format_number(100 * share, 1) + "%"; }

std::string seconds(std::chrono::nanoseconds time) {
  return format_number(seconds_of(time), 2) + " s";
}

std::string milliseconds(std::chrono::nanoseconds time) {
  return format_number(1000 * seconds_of(time), 2) + " ms";
}

Stalls pool_stalls(const TrainResult& r) { return {.count = r.pool.waits, .total = r.pool.waited}; }

/// Returns the stalls by cause, without causes that held nothing back.
std::string stalls_by_cause(const TrainResult& r) {
  const std::array<std::pair<std::string_view, Stalls>, 6> causes{
      {{"budget", r.admission.hard},
       {"run-ahead", r.admission.soft},
       {"turn", r.admission.turn},
       {"open batches", r.admission.grace},
       {"pool", pool_stalls(r)},
       {"barrier", r.barriers}}};
  std::string text;
  for (const auto& [cause, stalls] : causes) {
    if (stalls.count == 0) continue;
    text += (text.empty() ? "" : "; ") + std::string(cause) + " " + std::to_string(stalls.count) +
            ", " + seconds(stalls.total);
  }
  return text.empty() ? "none" : text;
}

/// Returns the throttle-caused idle time as a share of the run.
double caused_share(const TrainResult& r) {
  return r.seconds > 0 ? seconds_of(r.admission.run_ahead.caused_idle) / r.seconds : 0;
}

std::string caused_idle(const TrainResult& r) {
  return milliseconds(r.admission.run_ahead.caused_idle) + ", " + percent(caused_share(r)) +
         " of the run";
}

/// Returns how the target moved; only one that adapts does.
std::string target(const RunAhead& chosen, const TrainResult& r) {
  if (!adapts(chosen)) return format_run_ahead(chosen);
  const RunAheadStatistics& moved = r.admission.run_ahead;
  return milliseconds(moved.target) + " = lead " + milliseconds(moved.lead) + " + copy " +
         milliseconds(moved.copy) + " + margin " + milliseconds(moved.margin) + "; at most " +
         milliseconds(moved.most);
}

using Rows = std::vector<std::vector<std::string>>;

std::string static_memory(const StaticFigures& f) {
  std::string text = "arena " + format_bytes(f.arena) + "; as one operation " +
                     format_count(f.batches, "batch", "es");
  if (f.captures != 0) text += ", " + format_count(f.captures, "capture");
  return text;
}

/// Adds what held dispatch back. Only `throttled` admits, so only it has the last three rows.
void add_throttling(Rows& rows, const PolicyOptions& policy, const TrainResult& r) {
  rows.push_back({"dispatch stalls",
                  std::to_string(r.stalls.count) + ", " + seconds(r.stalls.total) + " in all"});
  rows.push_back({"stalls by cause", stalls_by_cause(r)});
  if (policy.policy.value != Policy::kThrottled) return;
  rows.push_back({"throttle-caused idle", caused_idle(r)});
  rows.push_back({"run-ahead target", target(policy.run_ahead.value, r)});
  rows.push_back({"forced admissions", std::to_string(r.admission.forced)});
}

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

/// Null without static memory.
json static_json(const TrainResult& r) {
  if (!r.static_memory) return nullptr;
  return {{"arena_bytes", r.static_memory->arena.count},
          {"batches_as_one_operation", r.static_memory->batches},
          {"captures", r.static_memory->captures}};
}

/// Members common to all runs.
json memory_json(const TrainResult& r) {
  const auto stalls = [](const Stalls& s) {
    return json{{"count", s.count}, {"seconds", seconds_of(s.total)}};
  };
  const RunAheadStatistics& moved = r.admission.run_ahead;
  json j{{"outcome", describe_outcome(r)},
         {"seconds", r.seconds},
         {"measured", {{"from_ns", r.measured_from}, {"to_ns", r.measured_to}}},
         {"idle_share", r.idle_share},
         {"operations", r.operations},
         {"static_memory", static_json(r)},
         {"host_us", 1e6 * r.host_seconds},
         {"peak_reserved_bytes", r.pool.reserved.peak.count},
         {"peak_held_bytes", r.pool.held.peak.count},
         {"peak_allocated_bytes", r.pool.allocated.peak.count},
         {"staging_bytes", r.staging.count},
         {"stalls", stalls(r.stalls)},
         {"stalls_budget", stalls(r.admission.hard)},
         {"stalls_run_ahead", stalls(r.admission.soft)},
         {"stalls_turn", stalls(r.admission.turn)},
         {"stalls_memory", stalls(r.admission.grace)},
         {"stalls_pool", stalls(pool_stalls(r))},
         {"stalls_barrier", stalls(r.barriers)},
         {"throttle_caused_idle",
          {{"seconds", seconds_of(moved.caused_idle)}, {"share", caused_share(r)}}},
         {"run_ahead_target",
          {{"seconds", seconds_of(moved.target)},
           {"most_seconds", seconds_of(moved.most)},
           {"lead_seconds", seconds_of(moved.lead)},
           {"copy_seconds", seconds_of(moved.copy)},
           {"margin_seconds", seconds_of(moved.margin)}}},
         {"admitted_by_force", r.admission.forced},
         {"most_in_flight", r.admission.most_submitted},
         {"pool",
          {{"hits", r.pool.hits},
           {"misses", r.pool.misses},
           {"handovers", r.pool.handovers},
           {"waits", r.pool.waits},
           {"retries", r.pool.retries},
           {"releases", r.pool.releases},
           {"failures", r.pool.failures}}}};
  if (!r.report.empty()) j["report"] = r.report;
  if (r.testing) j["test_images"] = r.test_images;
  if (r.test_accuracy) j["test_accuracy"] = *r.test_accuracy;
  return j;
}

json result_json(const TrainResult& r) {
  json j = memory_json(r);
  j["batches"] = r.batches;
  j["batches_per_second"] = r.batches_per_second();
  if (r.mean_loss) j["mean_loss"] = *r.mean_loss;
  json held = json::array();
  json staging = json::array();
  for (const BatchSample& sample : r.samples) {
    held.push_back(sample.held.count);
    staging.push_back(sample.staging.count);
  }
  j["held_bytes_per_batch"] = std::move(held);
  j["staging_bytes_per_batch"] = std::move(staging);
  return j;
}

/// Null if nothing was recorded.
json timeline_json(const TrainResult& r) {
  if (!r.recording) return nullptr;
  return {{"file", r.recording->file},
          {"events", r.recording->events},
          {"lost", r.recording->lost},
          {"note", r.recording->note}};
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
  add_throttling(rows, settings.policy, result);
  if (result.mean_loss) rows.push_back({"mean loss", format_number(*result.mean_loss, 6)});
  if (settings.data != nullptr) rows.push_back({"test accuracy", accuracy(result)});
  return format_table(rows);
}

std::string run_json(const TrainSettings& settings, const TrainResult& result) {
  const json j{{"weir", kVersion},
               {"settings", settings.describe()},
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
  add_throttling(rows, settings.train.policy, result);
  rows.push_back({"test accuracy", accuracy(result)});
  return format_table(rows);
}

std::string predict_json(const PredictSettings& settings, const TrainResult& result) {
  json figures = memory_json(result);
  figures["images_per_second"] =
      result.seconds > 0 ? static_cast<double>(result.test_images) / result.seconds : 0;
  const json j{{"weir", kVersion},
               {"settings", settings.describe()},
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
               {"settings", settings.train.describe()},
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
