#pragma once

// What the conditions of every part of the report share.

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/verdicts.hpp"

namespace weir::gpu_check {

[[nodiscard]] inline State met_if(bool met) { return met ? State::kMet : State::kNotMet; }

/// The verdict when the step has no figures to judge.
[[nodiscard]] Verdict without_figures(const std::string& condition, const nlohmann::json& evidence,
                                      const Step& step);

/// Adds what `judged` finds, or each of `conditions` as not met when the figures are not what the
/// step should write. What is judged by figures that are cut is not met.
template <typename Judge>
void judge_figures(const std::vector<std::string>& conditions, const nlohmann::json& evidence,
                   const std::string& name, std::vector<Verdict>& verdicts, const Judge& judged) {
  const nlohmann::json& figures = figures_of(evidence, name);
  const Step step = step_of(evidence, name);
  try {
    if (!figures.is_null()) {
      std::vector<Verdict> found = judged(figures, step);
      for (Verdict& verdict : found) {
        if (!figures.value("cut", false)) break;
        verdict.state = State::kNotMet;
        verdict.figure += "; its figures are cut";
      }
      verdicts.insert(verdicts.end(), found.begin(), found.end());
      return;
    }
    for (const std::string& condition : conditions) {
      verdicts.push_back(without_figures(condition, evidence, step));
    }
  } catch (const std::exception& error) {
    for (const std::string& condition : conditions) {
      verdicts.push_back({condition, State::kNotMet,
                          std::string("its figures are not as expected: ") + error.what()});
    }
  }
}

}  // namespace weir::gpu_check
