#pragma once

// What a comparison shows, in one sentence. Pure.

#include <string>

#include "trainer/compare/compare.hpp"

namespace weir {

/// Says how much memory throttled needs beside unbounded run-ahead, at which speed, whether the
/// weights are the same, and how unbounded run-ahead ended in the budget. Every figure is of this
/// comparison. Says `the same speed` only if the median ratio is within 3% of 1. One sentence
/// without a newline.
[[nodiscard]] std::string claim_of(const CompareSettings& settings, const Comparison& comparison);

}  // namespace weir
