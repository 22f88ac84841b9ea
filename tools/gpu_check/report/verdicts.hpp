#pragma once

// The conditions that a run on a GPU must meet, judged from what `gather` found. Pure functions.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::gpu_check {

/// Left out is neither: the machine lacks what the check needs, and the figure says what.
enum class State { kMet, kNotMet, kLeftOut };
[[nodiscard]] const char* to_string(State state);

struct Verdict {
  std::string condition;
  State state = State::kNotMet;
  std::string figure;  ///< what was found, or why there is nothing
};

/// Throughput of throttled that is asked for, as a share of that of unbounded with enough memory.
inline constexpr double kLeastRatio = 0.99;

/// The same, as a share of that of a training loop that calls CUDA itself.
inline constexpr double kLeastOfPlain = 0.97;

/// Every condition, always in the same order; one whose step failed or wrote something unexpected
/// is not met.
[[nodiscard]] std::vector<Verdict> judge(const nlohmann::json& evidence);

/// Whether none is `kNotMet`.
[[nodiscard]] bool holds(const std::vector<Verdict>& verdicts);

[[nodiscard]] nlohmann::json verdicts_json(const std::vector<Verdict>& verdicts);

}  // namespace weir::gpu_check
