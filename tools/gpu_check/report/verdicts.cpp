#include "tools/gpu_check/report/verdicts.hpp"

#include <algorithm>
#include <utility>

#include "tools/gpu_check/report/bench_figures.hpp"
#include "tools/gpu_check/report/comparison.hpp"
#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/judging.hpp"
#include "tools/gpu_check/report/kernel_bounds.hpp"
#include "tools/gpu_check/report/program_verdicts.hpp"
#include "tools/gpu_check/report/text.hpp"
#include "tools/gpu_check/report/timelines.hpp"
#include "tools/gpu_check/report/traces.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

void judge_tests(const json& evidence, std::vector<Verdict>& verdicts) {
  const std::string condition = "every test labelled gpu passes";
  judge_figures({condition}, evidence, "tests", verdicts, [&](const json& figures, const Step& s) {
    const TestCounts counts = count_tests(figures);
    std::string figure = std::to_string(counts.passed) + " passed, " +
                         std::to_string(counts.failed.size()) + " failed, " +
                         std::to_string(counts.skipped.size()) + " skipped";
    if (!s.ok()) figure += "; the step " + describe(s);
    const bool all = counts.passed > 0 && counts.failed.empty() && counts.skipped.empty();
    return std::vector{Verdict{condition, met_if(all && s.ok()), figure}};
  });
}

void judge_sanitizer(const std::string& name, const json& evidence,
                     std::vector<Verdict>& verdicts) {
  const std::string condition = "compute-sanitizer " + name + " is clean";
  const Step step = step_of(evidence, name);
  std::string summary;
  for (const json& found : evidence.at("steps")) {
    if (found.at("name") == name) summary = found.value("summary", "");
  }
  if (!step.ran() || summary.empty()) {
    verdicts.push_back({condition, step.ran() ? State::kNotMet : State::kLeftOut,
                        !step.ran() ? step.left_out
                        : step.ok() ? "it printed no summary"
                                    : describe(step)});
    return;
  }
  const bool clean = summary.find("SUMMARY: 0 ") != std::string::npos;
  verdicts.push_back({condition, met_if(clean && step.ok()),
                      step.ok() ? summary : summary + "; the step " + describe(step)});
}

/// What Weir costs beside a loop that calls CUDA itself. `unbounded` has that cost too.
Verdict judge_cost(const std::string& condition, const ComparisonFigures& read) {
  const PolicyLine& throttled = read.policy("throttled");
  if (!throttled.to_plain) {
    const PolicyLine& missing = read.plain.ratio ? throttled : read.plain;
    return {condition, State::kNotMet, missing.outcome};
  }
  const Spread& ratio = *throttled.to_plain;
  return {condition, met_if(ratio.median >= kLeastOfPlain),
          spread(ratio.median, ratio.low, ratio.high) + "; host time per batch " +
              number(throttled.host_us, 1) + " us, without Weir " + number(read.plain.host_us, 1) +
              " us"};
}

void judge_comparison(const Comparison& comparison, const json& evidence,
                      std::vector<Verdict>& verdicts) {
  const std::string at = std::string(comparison.title) + ": ";
  const std::string fast = at + "throttled is at least " + number(kLeastRatio, 2) + " of unbounded";
  const std::string cost =
      at + "throttled is at least " + number(kLeastOfPlain, 2) + " of a CUDA loop without Weir";
  const std::string above = at + "throttled is above the barrier";
  const std::string dies = at + "unbounded runs out of memory at the same budget";
  const std::string same = at + "weights are bit-identical over the policies";
  judge_figures(
      {fast, cost, above, dies, same}, evidence, comparison.step, verdicts,
      [&](const json& figures, const Step& step) {
        const ComparisonFigures read = read_comparison(figures);
        const PolicyLine& throttled = read.policy("throttled");
        const PolicyLine& barrier = read.policy("barrier");
        const PolicyLine& unbounded = read.policy("unbounded");
        const bool both = throttled.ratio && barrier.ratio;
        // The reference and the three policies that must live at the budget: fewer compare too
        // little.
        const bool enough = throttled.ratio && barrier.ratio && read.policy("backstop").ratio;
        std::vector<Verdict> found{
            {fast, met_if(throttled.ratio && *throttled.ratio >= kLeastRatio),
             throttled.ratio ? spread(*throttled.ratio, throttled.ratio_low, throttled.ratio_high)
                             : "throttled " + throttled.outcome},
            judge_cost(cost, read),
            {above, met_if(both && *throttled.ratio > *barrier.ratio),
             both ? number(*throttled.ratio, 3) + " against " + number(*barrier.ratio, 3)
                  : "throttled " + throttled.outcome + ", barrier " + barrier.outcome},
            {dies, met_if(unbounded.outcome.find("out of memory") == 0), unbounded.outcome},
            {same, met_if(read.identical && enough),
             std::string(read.identical ? "identical" : "NOT identical") + " in the " +
                 count(read.finished_runs, "run") + " that finished"}};
        if (!step.ok()) {
          for (Verdict& verdict : found) {
            verdict.state = State::kNotMet;
            verdict.figure += "; the step " + describe(step);
          }
        }
        return found;
      });
}

/// What is wrong with these kernels, or how far above their floors they are.
Verdict judge_kernels(const std::string& condition, const std::vector<KernelFigures>& all) {
  std::vector<KernelFigures> kernels;
  for (const KernelFigures& kernel : all) {
    if (!kernel.gives_floor()) kernels.push_back(kernel);
  }
  if (kernels.empty()) return {condition, State::kNotMet, "no kernel"};
  std::vector<std::string> wrong;
  for (const KernelFigures& kernel : kernels) {
    const JudgedKernel judged = judge_kernel(kernel);
    if (judged.within()) continue;
    wrong.push_back(kernel.name + " " + kernel.shape +
                    (judged.has_bound() ? " takes " + number(kernel.ratio(), 2) + " of at most " +
                                              number(judged.most, 2)
                                        : ": " + judged.reason));
  }
  for (const std::string& name : bounds_without_kernel(kernels)) {
    wrong.push_back(name + " was not timed");
  }
  if (!wrong.empty()) return {condition, State::kNotMet, join(wrong)};
  const auto [least, most] = std::ranges::minmax_element(kernels, {}, &KernelFigures::ratio);
  return {condition, State::kMet,
          count(kernels.size(), "kernel") + ", " + number(least->ratio(), 2) + " (" + least->name +
              " " + least->shape + ") to " + number(most->ratio(), 2) + " (" + most->name + " " +
              most->shape + ") times the floor"};
}

void judge_bench(const json& evidence, std::vector<Verdict>& verdicts) {
  const std::string condition = "each kernel's time over its floor is within its bound";
  judge_figures({condition}, evidence, "bench", verdicts, [&](const json& figures, const Step& s) {
    Verdict verdict = judge_kernels(condition, read_bench(figures));
    if (!s.ok()) {
      verdict.state = State::kNotMet;
      verdict.figure += "; the step " + describe(s);
    }
    return std::vector{verdict};
  });
}

}  // namespace

Verdict without_figures(const std::string& condition, const json& evidence, const Step& step) {
  if (!step.ran()) return {condition, State::kLeftOut, step.left_out};
  if (!step.ok()) return {condition, State::kNotMet, describe(step)};
  for (const json& found : evidence.at("steps")) {
    if (found.at("name") == step.name && found.contains("unreadable")) {
      return {condition, State::kNotMet, found["unreadable"].get<std::string>() + " is no JSON"};
    }
  }
  return {condition, State::kNotMet, "it wrote no figures"};
}

const char* to_string(State state) {
  switch (state) {
    case State::kMet:
      return "met";
    case State::kNotMet:
      return "NOT MET";
    case State::kLeftOut:
      return "left out";
  }
  return "unknown";
}

std::vector<Verdict> judge(const json& evidence) {
  std::vector<Verdict> verdicts;
  judge_tests(evidence, verdicts);
  for (const char* tool : {"memcheck", "racecheck"}) judge_sanitizer(tool, evidence, verdicts);
  for (const Comparison& comparison : kComparisons) {
    judge_comparison(comparison, evidence, verdicts);
  }
  judge_bench(evidence, verdicts);
  judge_facts(evidence, verdicts);
  judge_traces(evidence, verdicts);
  judge_timelines(evidence, verdicts);
  judge_programs(evidence, verdicts);
  return verdicts;
}

bool holds(const std::vector<Verdict>& verdicts) {
  return std::none_of(verdicts.begin(), verdicts.end(),
                      [](const Verdict& verdict) { return verdict.state == State::kNotMet; });
}

json verdicts_json(const std::vector<Verdict>& verdicts) {
  json all = json::array();
  for (const Verdict& verdict : verdicts) {
    all.push_back({{"condition", verdict.condition},
                   {"verdict", to_string(verdict.state)},
                   {"figure", verdict.figure}});
  }
  return all;
}

}  // namespace weir::gpu_check
