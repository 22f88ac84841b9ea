#include "kernels/sparse/csr_layer.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/sparse/weighted_rows.hpp"

namespace weir {
namespace {

/// line = act(line + b).
void finish(std::span<const float> b, std::span<float> line, Activation activation) {
  for (std::size_t j = 0; j < line.size(); ++j) line[j] += b[j];
  if (activation == Activation::kNone) return;
  for (float& value : line) value = value < 0.0F ? 0.0F : value;
}

}  // namespace

void csr_forward(const CsrRows& x, std::span<const float> w, std::span<const float> b,
                 std::span<float> y, Activation activation) {
  const std::size_t n = b.size();
  require_elements({"csr_forward", "values"}, x.values.size(), x.indices.size());
  require_matrix({"csr_forward", "w"}, w.size(), x.columns, n);
  require_matrix({"csr_forward", "y"}, y.size(), x.rows(), n);
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const std::span<float> line = y.subspan(i * n, n);
    std::ranges::fill(line, 0.0F);
    add_weighted_rows(entries_of(x, i), w.data(), n, line);
    finish(b, line, activation);
  }
}

void csr_weight_gradient(DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                         std::span<float> dw) {
  require_elements({"csr_weight_gradient", "values"}, x.values.size(), x.rows.size());
  require_elements({"csr_weight_gradient", "starts"}, x.starts.size(), x.touched.size() + 1);
  require_matrix({"csr_weight_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_matrix({"csr_weight_gradient", "dw"}, dw.size(), x.touched.size(), shape.n);
  for (std::size_t t = 0; t < x.touched.size(); ++t) {
    const std::span<float> line = dw.subspan(t * shape.n, shape.n);
    std::ranges::fill(line, 0.0F);
    add_weighted_rows(entries_of(x, t), dy.data(), shape.n, line);
  }
}

}  // namespace weir
