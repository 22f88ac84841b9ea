#include "trainer/report/run_figures.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "scheduler/admission/run_ahead_limit.hpp"
#include "tools/program/numbers.hpp"

namespace weir::run_figures {

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double caused_share(const TrainResult& r) {
  return r.seconds > 0 ? seconds_of(r.caused_idle) / r.seconds : 0;
}

std::string percent(double share) { return format_number(100 * share, 1) + "%"; }

std::string seconds(std::chrono::nanoseconds time) {
  return format_number(seconds_of(time), 2) + " s";
}

std::string milliseconds(std::chrono::nanoseconds time) {
  return format_number(1000 * seconds_of(time), 2) + " ms";
}

std::string stalls_by_cause(const TrainResult& r) {
  const std::array<std::pair<std::string_view, Stalls>, 4> causes{{{"budget", r.admission.budget},
                                                                   {"run-ahead", r.admission.soft},
                                                                   {"turn", r.admission.turn},
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
  if (moved.most.count() == 0) {
    return milliseconds(RunAheadLimit::kFirstTime) + " or " +
           format_count(RunAheadLimit::kFirstBatches, "batch", "es") + ", as at the beginning";
  }
  return milliseconds(moved.target) + "; at most " + milliseconds(moved.most);
}

std::string static_memory(const StaticFigures& f) {
  std::string text = "arena " + format_bytes(f.arena) + "; as one operation " +
                     format_count(f.batches, "batch", "es");
  if (f.captures != 0) text += ", " + format_count(f.captures, "capture");
  return text;
}

std::string time_at_levels(const TrainResult& r) {
  std::string text;
  for (std::size_t i = 0; i < kPressureLevels; ++i) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(static_cast<PressureLevel>(i))) +
            " " + seconds(r.pool.pressure.at(i));
  }
  return text;
}

void add_throttling(std::vector<Fact>& rows, const PolicyOptions& policy, const TrainResult& r) {
  rows.push_back({"dispatch stalls",
                  std::to_string(r.stalls.count) + ", " + seconds(r.stalls.total) + " in all"});
  rows.push_back({"stalls by cause", stalls_by_cause(r)});
  rows.push_back({"memory pressure", time_at_levels(r)});
  if (policy.policy.value != Policy::kThrottled) return;
  rows.push_back({"throttle-caused idle", caused_idle(r)});
  rows.push_back({"run-ahead target", target(policy.run_ahead.value, r)});
  rows.push_back({"forced admissions", std::to_string(r.admission.forced)});
}

}  // namespace weir::run_figures
