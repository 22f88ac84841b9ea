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

/// Returns the table, what holds for all its rows, and last the claim (see claim.hpp). `wide` adds
/// the columns and lines with details.
[[nodiscard]] std::string format_comparison(const CompareSettings& settings,
                                            const Comparison& comparison, bool wide = false);
[[nodiscard]] std::string comparison_json(const CompareSettings& settings,
                                          const Comparison& comparison);

}  // namespace weir
