#include "trainer/report/report.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "trainer/report/run_figures.hpp"

namespace weir {
namespace {

using nlohmann::json;

}  // namespace

namespace run_figures {
namespace {

/// Null without static memory.
json static_json(const TrainResult& r) {
  if (!r.static_memory) return nullptr;
  return {{"arena_bytes", r.static_memory->arena.count},
          {"batches_as_one_operation", r.static_memory->batches},
          {"captures", r.static_memory->captures}};
}

}  // namespace

json memory_json(const TrainResult& r) {
  const auto stalls = [](const Stalls& s) {
    return json{{"count", s.count}, {"seconds", seconds_of(s.total)}};
  };
  const RunAheadStatistics& moved = r.admission.run_ahead;
  json pressure;
  for (std::size_t i = 0; i < kPressureLevels; ++i) {
    pressure[std::string(to_string(static_cast<PressureLevel>(i)))] =
        seconds_of(r.pool.pressure.at(i));
  }
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
         {"stalls_budget", stalls(r.admission.budget)},
         {"stalls_run_ahead", stalls(r.admission.soft)},
         {"stalls_turn", stalls(r.admission.turn)},
         {"stalls_barrier", stalls(r.barriers)},
         {"throttle_caused_idle",
          {{"seconds", seconds_of(r.caused_idle)}, {"share", caused_share(r)}}},
         {"run_ahead_target",
          {{"seconds", seconds_of(moved.target)}, {"most_seconds", seconds_of(moved.most)}}},
         {"pressure_seconds", std::move(pressure)},
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

json timeline_json(const TrainResult& r) {
  if (!r.recording) return nullptr;
  return {{"file", r.recording->file},
          {"events", r.recording->events},
          {"lost", r.recording->lost},
          {"note", r.recording->note}};
}

}  // namespace run_figures

namespace {

using run_figures::memory_json;
using run_figures::percent;
using run_figures::result_json;
using run_figures::static_memory;
using run_figures::timeline_json;

std::string accuracy(const TrainResult& r) {
  if (!r.test_accuracy) return "-";
  return percent(*r.test_accuracy) + " of " + format_count(r.test_images, "test image");
}

/// The figures that every line of a comparison has that ran.
json speeds_json(const PolicyFigures& f) {
  json j{{"policy", f.name}, {"runs", f.runs}};
  if (f.runs == 0) return j;
  j["batches_per_second"] = f.batches_per_second;
  j["ratio_to_reference"] = f.ratio;
  j["ratio_low"] = f.ratio_low;
  j["ratio_high"] = f.ratio_high;
  j["host_us"] = 1e6 * f.host_seconds;
  return j;
}

/// The figures that a training loop without Weir has.
json plain_json(const Comparison& comparison) {
  if (!comparison.plain) return {{"left_out", comparison.why_no_plain}};
  json j = speeds_json(*comparison.plain);
  if (comparison.plain->runs == 0) return j;
  const TrainResult& r = comparison.plain->last;
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
  json j = speeds_json(f);
  if (f.runs != 0) {
    j["idle_share"] = f.idle_share;
    j["last_run"] = result_json(f.last);
  }
  if (f.to_plain) {
    j["to_plain"] = {
        {"ratio", f.to_plain->median}, {"low", f.to_plain->low}, {"high", f.to_plain->high}};
  }
  if (f.smallest_budget) j["smallest_budget_bytes"] = f.smallest_budget->count;
  return j;
}

/// Adds what a run took.
void add_memory(std::vector<Fact>& rows, const TrainResult& r) {
  rows.insert(rows.end(),
              {Fact{"device idle", percent(r.idle_share)},
               {"peak reserved", format_bytes(r.pool.reserved.peak)},
               {"peak held", format_bytes(r.pool.held.peak)},
               {"host staging", format_bytes(r.staging)},
               {"most in flight", format_count(r.admission.most_submitted, "batch", "es")}});
}

double images_per_second(const TrainResult& r) {
  return r.seconds > 0 ? static_cast<double>(r.test_images) / r.seconds : 0;
}

}  // namespace

std::string format_run(const TrainSettings& settings, const TrainResult& result) {
  std::vector<Fact> rows{{"policy", std::string(to_string(settings.policy.policy.value))},
                         {"result", describe_outcome(result)},
                         {"batches", std::to_string(result.batches)},
                         {"batches/s", format_number(result.batches_per_second(), 2)},
                         {"host per batch", format_number(1e6 * result.host_seconds, 1) + " us"}};
  add_memory(rows, result);
  if (result.static_memory) {
    rows.push_back({"static memory", static_memory(*result.static_memory)});
  }
  run_figures::add_throttling(rows, settings.policy, result);
  if (result.mean_loss) rows.push_back({"mean loss", format_number(*result.mean_loss, 6)});
  if (settings.data != nullptr) rows.push_back({"test accuracy", accuracy(result)});
  return format_facts(rows) + wrapped(run_figures::kLegend, 2);
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
  std::vector<Fact> rows{{"policy", std::string(to_string(settings.train.policy.policy.value))},
                         {"result", describe_outcome(result)},
                         {"images", std::to_string(result.test_images)},
                         {"images/s", format_number(images_per_second(result), 0)}};
  add_memory(rows, result);
  run_figures::add_throttling(rows, settings.train.policy, result);
  rows.push_back({"test accuracy", accuracy(result)});
  return format_facts(rows) + wrapped(run_figures::kLegend, 2);
}

std::string predict_json(const PredictSettings& settings, const TrainResult& result) {
  json figures = memory_json(result);
  figures["images_per_second"] = images_per_second(result);
  const json j{{"weir", kVersion},
               {"settings", settings_json(settings.lines())},
               {"policy", std::string(to_string(settings.train.policy.policy.value))},
               {"result", std::move(figures)}};
  return json_text(j);
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
