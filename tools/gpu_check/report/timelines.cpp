#include "tools/gpu_check/report/timelines.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/gpu_check/report/judging.hpp"
#include "tools/gpu_check/report/text.hpp"
#include "tools/gpu_check/report/timeline_runs.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

constexpr double kPercent = 100;
/// One pair tells little.
constexpr std::size_t kLeastPairs = 3;

std::string percent(double share) { return number(kPercent * share, 0) + "%"; }

/// Without CUPTI there is nothing to judge; where it is there and records nothing that is no
/// excuse.
std::vector<Verdict> without_records(const std::vector<std::string>& conditions, State state,
                                     const std::string& why) {
  std::vector<Verdict> all;
  all.reserve(conditions.size());
  for (const std::string& condition : conditions) all.push_back({condition, state, why});
  return all;
}

Verdict judge_counts(const std::string& condition, const json& figures) {
  std::vector<std::string> wrong;
  double operations = 0;
  for (const json& stretch : figures.at("stretches")) {
    const auto launched = stretch.at("operations").get<double>();
    const auto recorded = stretch.at("recorded").get<double>();
    operations += launched;
    if (launched == recorded) continue;
    wrong.push_back(stretch.at("name").get<std::string>() + ": " + number(recorded, 0) + " of " +
                    number(launched, 0));
  }
  if (figures.at("strays") != 0) wrong.push_back(figures.at("strays").dump() + " of nothing known");
  if (figures.at("lost") != 0) wrong.push_back(figures.at("lost").dump() + " events lost");
  if (!figures.at("complete").get<bool>()) wrong.emplace_back("the recording has no end");
  if (operations == 0) wrong.emplace_back("nothing was launched");
  return {condition, met_if(wrong.empty()),
          wrong.empty() ? number(operations, 0) + " kernels and copies" : join(wrong)};
}

Verdict judge_times(const std::string& condition, const json& figures) {
  std::vector<std::string> wrong;
  double low = HUGE_VAL;
  double high = 0;
  for (const json& stretch : figures.at("stretches")) {
    if (!stretch.at("timed").get<bool>()) continue;
    const auto recorded_ms = stretch.at("sum_ms").get<double>();
    const auto event_ms = stretch.at("event_ms").get<double>();
    const double ratio = recorded_ms / event_ms;
    low = std::min(low, ratio);
    high = std::max(high, ratio);
    if (event_ms > 0 && recorded_ms >= (1 - kMostOff) * event_ms &&
        recorded_ms <= (1 + kMostOff) * event_ms) {
      continue;
    }
    wrong.push_back(stretch.at("name").get<std::string>() + " " + number(ratio, 3));
  }
  if (high == 0) return {condition, State::kNotMet, "nothing was timed"};
  return {condition, met_if(wrong.empty()),
          wrong.empty() ? number(low, 3) + " to " + number(high, 3) + " of the events' times"
                        : join(wrong)};
}

Verdict judge_joins(const std::string& condition, const json& figures) {
  std::vector<std::string> wrong;
  double worst_us = 0;
  for (const json& stretch : figures.at("stretches")) {
    const std::string name = stretch.at("name");
    if (stretch.at("joined") != stretch.at("operations")) {
      wrong.push_back(name + ": " + stretch.at("joined").dump() + " of " +
                      stretch.at("operations").dump() + " have their batch");
    }
    if (!stretch.at("in_order").get<bool>()) wrong.push_back(name + " is not in order");
    worst_us = std::max(worst_us, stretch.at("outside_us").get<double>());
  }
  if (figures.at("stretches").empty()) wrong.emplace_back("nothing was launched");
  const bool is_near = worst_us <= kMostOutsideUs;
  const bool met = wrong.empty() && is_near;
  if (wrong.empty() || !is_near) {
    wrong.push_back(number(worst_us, 0) + " us outside the host's times at most");
  }
  return {condition, met_if(met), join(wrong)};
}

void judge_known_work(const json& evidence, std::vector<Verdict>& verdicts) {
  const std::vector<std::string> conditions{
      "timeline: recorded kernels and copies equal those launched",
      "timeline: their times are within " + percent(kMostOff) + " of CUDA events",
      "timeline: each is in its batch, in order, and within the host's times around it"};
  judge_figures(conditions, evidence, kTimelineStep, verdicts,
                [&](const json& figures, const Step& step) {
                  if (const std::string why = figures.value("no_cupti", ""); !why.empty()) {
                    return without_records(conditions, State::kLeftOut, why);
                  }
                  if (const std::string why = figures.value("refused", ""); !why.empty()) {
                    return without_records(conditions, State::kNotMet, why);
                  }
                  std::vector<Verdict> found{judge_counts(conditions[0], figures),
                                             judge_times(conditions[1], figures),
                                             judge_joins(conditions[2], figures)};
                  for (Verdict& verdict : found) {
                    if (step.ok()) break;
                    verdict.state = State::kNotMet;
                    verdict.figure += "; the step " + describe(step);
                  }
                  return found;
                });
}

void judge_recording_cost(const json& evidence, std::vector<Verdict>& verdicts) {
  const std::string condition = "timeline: a recording costs at most " + percent(kMostCost - 1) +
                                " of weir-train's throughput";
  judge_figures(
      {condition}, evidence, kTimelineCostStep, verdicts, [&](const json& figures, const Step& s) {
        const std::string why = figures.value("why", "");
        std::vector<double> costs;
        bool records = true;
        bool ran = true;
        for (const json& pair : figures.at("pairs")) {
          const auto plain = pair.at("plain").get<double>();
          const auto recorded = pair.at("recorded").get<double>();
          ran = ran && plain > 0 && recorded > 0;
          costs.push_back(ran ? plain / recorded : 0);
          records = records && pair.at("kernels") != 0 && pair.at("lost") == 0;
        }
        std::ranges::sort(costs);
        Verdict verdict{condition, State::kNotMet, "no pair of runs"};
        if (!costs.empty()) {
          const double median = (costs[(costs.size() - 1) / 2] + costs[costs.size() / 2]) / 2;
          verdict.state = met_if(s.ok() && records && ran && costs.size() >= kLeastPairs &&
                                 median <= kMostCost);
          verdict.figure = spread(median, costs.front(), costs.back()) + " times as long in " +
                           count(costs.size(), "pair");
        }
        if (!records) verdict.figure += "; kernels are missing" + (why.empty() ? "" : ": " + why);
        if (!ran) verdict.figure += "; a run trained nothing";
        if (!s.ok()) verdict.figure += "; the step " + describe(s);
        if ((costs.empty() || !records) && why.find("was not found") != std::string::npos) {
          verdict = {condition, State::kLeftOut, why};
        }
        return std::vector{verdict};
      });
}

/// What keeps a recording from being whole; empty where nothing does.
std::string fault_of(const RecordedRun& run) {
  if (!run.finished()) return run.outcome();
  if (!run.activity) return "there is no timeline; " + run.first_line();
  if (run.activity->kernels == 0) return "no kernel was recorded; " + run.first_line();
  if (!run.activity->complete) return "the recording was cut";
  if (run.activity->lost > 0) return number(run.activity->lost, 0) + " events lost";
  return "";
}

std::string activity_text(const RecordedRun& run) {
  return number(run.activity->kernels, 0) + " kernels, " + number(run.activity->copies, 0) +
         " copies";
}

Verdict judge_recorded(const std::string& condition, const RecordedRun* run,
                       const RecordedRun* plain) {
  if (run == nullptr) return {condition, State::kNotMet, "not run"};
  if (!run->left_out.empty()) return {condition, State::kLeftOut, run->left_out};
  std::string fault = fault_of(*run);
  if (fault.empty() && (plain == nullptr || plain->losses != run->losses)) {
    fault = "losses differ from those without it";
  }
  if (fault.empty() && run->setup == kRecordedSetup && run->page_bytes == 0) fault = "no page";
  if (!fault.empty()) return {condition, State::kNotMet, fault};
  return {
      condition, State::kMet,
      activity_text(*run) + (run->page_bytes > 0 ? ", a page of " + bytes(run->page_bytes) : "")};
}

/// Two profilers at once: each has what it should, or a line says why not.
Verdict judge_beside(const std::string& condition, const RecordedRun* run, bool other_works,
                     const std::string& other) {
  if (run == nullptr) return {condition, State::kNotMet, "not run"};
  if (!run->left_out.empty()) return {condition, State::kLeftOut, run->left_out};
  if (!run->finished()) return {condition, State::kNotMet, run->outcome()};
  const bool ours = fault_of(*run).empty();
  const std::string both =
      other + "; the timeline " + (ours ? "has " + activity_text(*run) : fault_of(*run));
  if (ours && other_works) return {condition, State::kMet, both};
  return {condition, met_if(!run->lines.empty()),
          both + (run->lines.empty() ? "; nothing says why" : "; it says: " + run->lines.front())};
}

std::vector<Verdict> judge_runs(const std::vector<std::string>& conditions, const json& figures) {
  const RecordedRuns runs = read_recorded_runs(figures);
  if (!runs.left_out.empty()) {
    return without_records(conditions, State::kLeftOut, runs.left_out);
  }
  const RecordedRun* plain = runs.find("plain");
  const RecordedRun* inside = runs.find("inside");
  const RecordedRun* outside = runs.find("outside");
  const double alone = plain != nullptr ? plain->profiled_kernels : 0;
  const double beside = inside != nullptr ? inside->profiled_kernels : 0;
  const bool nsys_works = outside != nullptr && outside->other_report_bytes > 0;
  std::vector<Verdict> found{
      judge_recorded(conditions[0], runs.find(kRecordedSetup), plain),
      judge_recorded(conditions[1], runs.find("injected"), plain),
      judge_beside(conditions[2], inside, alone > 0 && beside >= kLeastProfiled * alone,
                   "torch.profiler has " + number(beside, 0) + " of " + number(alone, 0)),
      judge_beside(conditions[3], outside, nsys_works,
                   nsys_works ? "nsys has its report" : "nsys has no report")};
  if (alone == 0) {
    found[2] = {conditions[2], State::kLeftOut,
                "torch.profiler sees no kernel without Weir either"};
  }
  return found;
}

}  // namespace

void judge_timelines(const json& evidence, std::vector<Verdict>& verdicts) {
  judge_known_work(evidence, verdicts);
  judge_recording_cost(evidence, verdicts);
  const std::vector<std::string> conditions{
      "timeline: PyTorch under weir timeline record is recorded, and has a page",
      "timeline: PyTorch with libweir_timeline.so alone is recorded",
      "timeline: torch.profiler inside works, or a line says why not",
      "timeline: nsys outside works, or a line says why not"};
  judge_figures(conditions, evidence, kTimelineProgramsStep, verdicts,
                [&](const json& figures, const Step& step) {
                  std::vector<Verdict> found = judge_runs(conditions, figures);
                  for (Verdict& verdict : found) {
                    if (step.ok() || verdict.state == State::kLeftOut) continue;
                    verdict.state = State::kNotMet;
                    verdict.figure += "; the step " + describe(step);
                  }
                  return found;
                });
}

}  // namespace weir::gpu_check
