#pragma once

// From the rounds of a case to medians, and to what was predicted beside what was measured. Pure
// functions.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/dispatch/dispatch.hpp"

namespace weir {

/// One prediction beside what it predicts; times in seconds, medians over the rounds.
struct Prediction {
  std::string experiment{};  ///< `waiting for each` or `waiting once`
  std::string formula{};
  double measured = 0;
  double predicted = 0;
  double ratio = 0;       ///< predicted to measured in the same round, median
  double low = 0;         ///< a quarter of the rounds are below it
  double high = 0;        ///< a quarter of the rounds are above it
  bool expected = false;  ///< whether its assumption holds for these stages
};

struct CaseSummary {
  DispatchCase what{};
  std::uint64_t rounds = 0;
  Stages stages{};  ///< each its own median
  double issued = 0;
  SlowerSide slower = SlowerSide::kDevice;
  bool apart = false;                     ///< sides_apart
  std::vector<Prediction> predictions{};  ///< none without a round
};

[[nodiscard]] CaseSummary summarize(const CaseFigures& figures, std::uint64_t operations);
/// Its medians; zeros when there is no round.
[[nodiscard]] ProductRound summarize(const std::vector<ProductRound>& rounds);

}  // namespace weir
