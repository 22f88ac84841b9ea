#include "kernels/reduce.hpp"

#include <algorithm>
#include <array>

#include "kernels/check.hpp"

namespace weir {
namespace {

template <typename Term>
float sum_tile(std::size_t begin, std::size_t end, const Term& term) noexcept {
  std::array<float, kSumLanes> lanes{};
  std::size_t i = begin;
  for (; end - i >= kSumLanes; i += kSumLanes) {
    for (std::size_t l = 0; l < kSumLanes; ++l) lanes[l] += term(i + l);
  }
  for (std::size_t l = 0; l < end - i; ++l) lanes[l] += term(i + l);
  for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

/// Passes from the last to the first: the terms are cut into at most kSumTile parts whose length is
/// a power of kSumTile, and each part's sum is a term of the last pass.
template <typename Term>
float sum_terms(std::size_t begin, std::size_t end, const Term& term) noexcept {
  if (end - begin <= kSumTile) return sum_tile(begin, end, term);
  std::size_t length = kSumTile;
  while ((end - begin - 1) / length >= kSumTile) length *= kSumTile;
  std::array<float, kSumTile> sums;
  std::size_t parts = 0;
  for (std::size_t i = begin; i < end; i += std::min(length, end - i)) {
    sums[parts++] = sum_terms(i, i + std::min(length, end - i), term);
  }
  return sum_tile(0, parts, [&sums](std::size_t i) noexcept { return sums[i]; });
}

}  // namespace

float sum(std::span<const float> x) noexcept {
  return sum_terms(0, x.size(), [x](std::size_t i) noexcept { return x[i]; });
}

float squared_distance(std::span<const float> x, std::span<const float> y) {
  require_elements({"squared_distance", "y"}, y.size(), x.size());
  return sum_terms(0, x.size(), [x, y](std::size_t i) noexcept {
    const float difference = x[i] - y[i];
    return difference * difference;
  });
}

}  // namespace weir
