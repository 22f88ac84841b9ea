#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/parts/half.hpp"

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

void to_half(std::span<const float> x, std::span<std::uint16_t> out) {
  require_elements({"to_half", "out"}, out.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = half_of_float(x[i]);
}

void to_float(std::span<const std::uint16_t> x, std::span<float> out) {
  require_elements({"to_float", "out"}, out.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = float_of_half(x[i]);
}

}  // namespace weir
