#pragma once

// What timelines say of a GPU, and what recording costs: steps timeline, timeline_cost and
// timeline_programs.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/gpu_check/report/verdicts.hpp"

namespace weir::gpu_check {

/// Known work beside what its timeline says: `weir-gpu timeline FILE`.
inline constexpr const char* kTimelineStep = "timeline";
/// Runs of weir-train with and without a timeline: tools/gpu_check/timeline_cost.
inline constexpr const char* kTimelineCostStep = "timeline_cost";
/// PyTorch under a recording: tools/gpu_check/programs/record_all.py.
inline constexpr const char* kTimelineProgramsStep = "timeline_programs";

/// By how much the recorded time of a stretch may differ from that of CUDA events.
inline constexpr double kMostOff = 0.02;
/// Time with a recording over time without it.
inline constexpr double kMostCost = 1.03;
/// How far an operation may seem to lie outside the host's times around it.
inline constexpr double kMostOutsideUs = 1000;

void judge_timelines(const nlohmann::json& evidence, std::vector<Verdict>& verdicts);

[[nodiscard]] std::string timeline_section(const nlohmann::json& figures);
[[nodiscard]] std::string timeline_cost_section(const nlohmann::json& figures);
[[nodiscard]] std::string timeline_programs_section(const nlohmann::json& figures);

}  // namespace weir::gpu_check
