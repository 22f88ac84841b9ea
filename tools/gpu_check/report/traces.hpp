#pragma once

// Real traces replayed on the device: what `weir replay --upstream cuda --json -` found.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/gpu_check/report/verdicts.hpp"

namespace weir::gpu_check {

/// The step, whose figures these are.
inline constexpr const char* kTracesStep = "traces";

void judge_traces(const nlohmann::json& evidence, std::vector<Verdict>& verdicts);
[[nodiscard]] std::string traces_section(const nlohmann::json& figures);

}  // namespace weir::gpu_check
