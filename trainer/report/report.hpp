#pragma once

// Formats runs and comparisons for people (tables) and for programs (JSON, the same figures).

#include <string>

#include "trainer/compare/compare.hpp"
#include "trainer/run/predict.hpp"
#include "trainer/run/train.hpp"

namespace weir {

[[nodiscard]] std::string format_run(const TrainSettings& settings, const TrainResult& result);
[[nodiscard]] std::string run_json(const TrainSettings& settings, const TrainResult& result);

[[nodiscard]] std::string format_predict(const PredictSettings& settings,
                                         const TrainResult& result);
[[nodiscard]] std::string predict_json(const PredictSettings& settings, const TrainResult& result);

/// Returns the table, what holds for all its rows, and last the claim (claim_of). `wide` adds
/// the columns and lines with details.
[[nodiscard]] std::string format_comparison(const CompareSettings& settings,
                                            const Comparison& comparison, bool wide = false);
[[nodiscard]] std::string comparison_json(const CompareSettings& settings,
                                          const Comparison& comparison);

/// Whether the fastest of a policy's pairs is at most a quarter faster than the slowest.
[[nodiscard]] bool pairs_agree(const PolicyFigures& figures) noexcept;
/// Whether a policy's pairs tell how fast it is: there are at least three, and they agree.
[[nodiscard]] bool tells_speed(const PolicyFigures& figures) noexcept;

/// Says how much memory throttled took beside unbounded run-ahead with enough memory, at which
/// speed, if the pairs tell it, both of the same runs, whether the weights are the same, the
/// smallest budget that was found, and how unbounded run-ahead ended in the budget. Says what was
/// the case where a run did not finish. One sentence without a newline, which begins with `subject`
/// and a colon.
[[nodiscard]] std::string claim_of(const CompareSettings& settings, const Comparison& comparison,
                                   const std::string& subject = "In short");

}  // namespace weir
