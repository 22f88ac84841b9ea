#include "kernels/sums/reduce.hpp"

#include "kernels/parts/check.hpp"

namespace weir {

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
