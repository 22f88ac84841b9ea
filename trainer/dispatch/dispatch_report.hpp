#pragma once

// Reduces the rounds of a case to medians, compares predictions with measurements, and formats them
// as tables for people and as JSON for programs, with the same figures. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/dispatch/dispatch.hpp"

namespace weir {

/// One prediction and its measurement; times in seconds, medians over the rounds.
struct Prediction {
  std::string experiment{};  ///< `waiting for each` or `waiting once`
  std::string formula{};
  double measured = 0;
  double predicted = 0;
  double ratio = 0;       ///< median of predicted / measured in the same round
  double low = 0;         ///< lower quartile
  double high = 0;        ///< upper quartile
  bool expected = false;  ///< whether the prediction's assumption holds for these stages
};

struct CaseSummary {
  DispatchCase what{};
  std::uint64_t rounds = 0;
  Stages stages{};  ///< the median of each
  double issued = 0;
  SlowerSide slower = SlowerSide::kDevice;
  bool apart = false;                     ///< sides_apart
  std::vector<Prediction> predictions{};  ///< empty if there is no round
};

[[nodiscard]] CaseSummary summarize(const CaseFigures& figures, std::uint64_t operations);
/// Returns the medians; zeros if there is no round.
[[nodiscard]] ProductRound summarize(const std::vector<ProductRound>& rounds);

/// `wide` adds the columns with details.
[[nodiscard]] std::string format_dispatch(const DispatchSettings& settings,
                                          const DispatchFigures& figures, bool wide = false);
[[nodiscard]] std::string dispatch_json(const DispatchSettings& settings,
                                        const DispatchFigures& figures);

}  // namespace weir
