#include "tools/gpu_check/report/page.hpp"
#include "tools/gpu_check/report/text.hpp"
#include "tools/gpu_check/report/timeline_runs.hpp"
#include "tools/gpu_check/report/timelines.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string ms(const json& time) { return number(time.get<double>(), 3) + " ms"; }

}  // namespace

std::string timeline_section(const json& figures) {
  std::string text;
  for (const char* why : {"no_cupti", "refused"}) {
    if (const std::string said = figures.value(why, ""); !said.empty()) text += said + "\n\n";
  }
  Rows rows{{"stretch", "operations", "recorded", "with their batch", "CUDA events",
             "recorded, sum", "first begin to last end"}};
  for (const json& stretch : figures.at("stretches")) {
    rows.push_back({stretch.at("name"), stretch.at("operations").dump(),
                    stretch.at("recorded").dump(), stretch.at("joined").dump(),
                    ms(stretch.at("event_ms")), ms(stretch.at("sum_ms")),
                    ms(stretch.at("span_ms"))});
  }
  return text + markdown_table(rows) + "\n";
}

std::string timeline_cost_section(const json& figures) {
  Rows rows{{"batches/s without", "with a recording", "kernels recorded", "events lost"}};
  for (const json& pair : figures.at("pairs")) {
    rows.push_back({number(pair.at("plain").get<double>(), 1),
                    number(pair.at("recorded").get<double>(), 1), pair.at("kernels").dump(),
                    pair.at("lost").dump()});
  }
  return markdown_table(rows) + "\n";
}

std::string timeline_programs_section(const json& figures) {
  const RecordedRuns runs = read_recorded_runs(figures);
  if (!runs.left_out.empty()) return "Left out: " + runs.left_out + ".\n\n";
  Rows rows{{"run", "result", "kernels recorded", "copies", "events lost", "of torch.profiler",
             "it says"}};
  for (const RecordedRun& run : runs.runs) {
    const bool has = run.activity.has_value();
    rows.push_back({run.setup, run.left_out.empty() ? run.outcome() : "left out: " + run.left_out,
                    has ? number(run.activity->kernels, 0) : "",
                    has ? number(run.activity->copies, 0) : "",
                    has ? number(run.activity->lost, 0) : "",
                    run.profiled_kernels > 0 ? number(run.profiled_kernels, 0) : "",
                    run.lines.empty() ? "" : run.lines.front()});
  }
  return markdown_table(rows) + "\n";
}

}  // namespace weir::gpu_check
