#pragma once

// What a comparison shows, in one sentence. Pure.

#include <string>

#include "trainer/compare/compare.hpp"

namespace weir {

/// Says how much memory throttled took beside unbounded run-ahead with enough memory, at which
/// speed, both of the same runs, whether the weights are the same, the smallest budget that was
/// found, and how unbounded run-ahead ended in the budget. Says what was the case where a run did
/// not finish. One sentence without a newline.
[[nodiscard]] std::string claim_of(const CompareSettings& settings, const Comparison& comparison);

}  // namespace weir
