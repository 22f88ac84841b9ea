#include "tools/gpu_check/report/timeline_runs.hpp"

#include <algorithm>

namespace weir::gpu_check {

using nlohmann::json;
namespace {

RecordedActivity read_activity(const json& found) {
  return {found.at("kernels"), found.at("copies"), found.at("lost"), found.at("complete")};
}

RecordedRun read_recorded_run(const json& found) {
  RecordedRun run;
  run.setup = found.at("setup");
  run.left_out = found.value("left_out", "");
  if (!run.left_out.empty()) return run;
  if (const json& code = found.at("exit_code"); !code.is_null()) run.exit_code = code.get<int>();
  run.stopped = found.value("stopped", false);
  run.said = found.value("said", "");
  run.lines = found.value("lines", run.lines);
  if (const json printed = found.value("printed", json()); printed.is_object()) {
    run.losses = printed.value("losses", run.losses);
    run.profiled_kernels = printed.value("profiled_kernels", 0.0);
  }
  if (const json activity = found.value("timeline", json()); !activity.is_null()) {
    run.activity = read_activity(activity);
  }
  run.page_bytes = found.value("page_bytes", 0.0);
  run.other_report_bytes = found.value("other_report_bytes", 0.0);
  return run;
}

}  // namespace

std::string RecordedRun::outcome() const {
  if (!exit_code) return "not run: " + said;
  if (stopped) return "stopped at its limit";
  if (*exit_code == 0) return "finished";
  return "failed (exit " + std::to_string(*exit_code) + "): " + said;
}

std::string RecordedRun::first_line() const {
  return lines.empty() ? "nothing says why" : "it says: " + lines.front();
}

const RecordedRun* RecordedRuns::find(std::string_view setup) const {
  const auto found = std::ranges::find(runs, setup, &RecordedRun::setup);
  return found == runs.end() ? nullptr : &*found;
}

RecordedRuns read_recorded_runs(const json& figures) {
  RecordedRuns all;
  all.left_out = figures.value("left_out", "");
  for (const json& run : figures.at("runs")) all.runs.push_back(read_recorded_run(run));
  return all;
}

}  // namespace weir::gpu_check
