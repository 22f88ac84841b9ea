#pragma once

// The conditions of the unmodified programs, and of the facts that only a GPU can tell.

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/gpu_check/report/verdicts.hpp"

namespace weir::gpu_check {

/// Share of the device memory that Weir could serve, and has to.
inline constexpr double kLeastServed = 0.99;
/// Processes that share the GPU, as plan.py starts them.
inline constexpr std::size_t kSharing = 8;

/// A program whose framework is not on the machine is left out; one that was not come to is not
/// met.
void judge_programs(const nlohmann::json& evidence, std::vector<Verdict>& verdicts);
/// What a fact without an answer says: the step crashed or was stopped when it asked.
inline constexpr const char* kNoAnswer = "no answer, the step ended here";
/// That each is answered, and as expected where Weir counts on it (`otherwise` in facts.hpp).
void judge_facts(const nlohmann::json& evidence, std::vector<Verdict>& verdicts);

}  // namespace weir::gpu_check
