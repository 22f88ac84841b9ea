#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/parts/check.hpp"

namespace weir {

void fill(std::span<float> out, float value) { std::fill(out.begin(), out.end(), value); }

void add(std::span<const float> x, std::span<float> total) {
  require_elements({"add", "x"}, x.size(), total.size());
  for (std::size_t i = 0; i < total.size(); ++i) total[i] += x[i];
}

void axpy(float alpha, std::span<const float> x, std::span<float> y) {
  require_elements({"axpy", "x"}, x.size(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += alpha * x[i];
}

void scale(float alpha, std::span<float> x) {
  for (float& value : x) value *= alpha;
}

}  // namespace weir
