#include "trainer/report/run_figures.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "tools/program/numbers.hpp"

namespace weir::run_figures {
namespace {

using nlohmann::json;

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Stalls pool_stalls(const TrainResult& r) { return {.count = r.pool.waits, .total = r.pool.waited}; }

/// Returns the throttle-caused idle time as a share of the run.
double caused_share(const TrainResult& r) {
  return r.seconds > 0 ? seconds_of(r.caused_idle) / r.seconds : 0;
}

/// Null without static memory.
json static_json(const TrainResult& r) {
  if (!r.static_memory) return nullptr;
  return {{"arena_bytes", r.static_memory->arena.count},
          {"batches_as_one_operation", r.static_memory->batches},
          {"captures", r.static_memory->captures}};
}

}  // namespace

std::string percent(double share) { return format_number(100 * share, 1) + "%"; }

std::string seconds(std::chrono::nanoseconds time) {
  return format_number(seconds_of(time), 2) + " s";
}

std::string milliseconds(std::chrono::nanoseconds time) {
  return format_number(1000 * seconds_of(time), 2) + " ms";
}

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

std::string caused_idle(const TrainResult& r) {
  return milliseconds(r.caused_idle) + ", " + percent(caused_share(r)) + " of the run";
}

std::string target(const RunAhead& chosen, const TrainResult& r) {
  if (!adapts(chosen)) return format_run_ahead(chosen);
  const RunAheadStatistics& moved = r.admission.run_ahead;
  return milliseconds(moved.target) + " = lead " + milliseconds(moved.lead) + " + copy " +
         milliseconds(moved.copy) + " + margin " + milliseconds(moved.margin) + "; at most " +
         milliseconds(moved.most);
}

std::string static_memory(const StaticFigures& f) {
  std::string text = "arena " + format_bytes(f.arena) + "; as one operation " +
                     format_count(f.batches, "batch", "es");
  if (f.captures != 0) text += ", " + format_count(f.captures, "capture");
  return text;
}

void add_throttling(std::vector<Fact>& rows, const PolicyOptions& policy, const TrainResult& r) {
  rows.push_back({"dispatch stalls",
                  std::to_string(r.stalls.count) + ", " + seconds(r.stalls.total) + " in all"});
  rows.push_back({"stalls by cause", stalls_by_cause(r)});
  if (policy.policy.value != Policy::kThrottled) return;
  rows.push_back({"throttle-caused idle", caused_idle(r)});
  rows.push_back({"run-ahead target", target(policy.run_ahead.value, r)});
  rows.push_back({"forced admissions", std::to_string(r.admission.forced)});
}

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
          {{"seconds", seconds_of(r.caused_idle)}, {"share", caused_share(r)}}},
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

json timeline_json(const TrainResult& r) {
  if (!r.recording) return nullptr;
  return {{"file", r.recording->file},
          {"events", r.recording->events},
          {"lost", r.recording->lost},
          {"note", r.recording->note}};
}

}  // namespace weir::run_figures
