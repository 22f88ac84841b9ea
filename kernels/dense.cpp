#include "kernels/dense.hpp"

#include <algorithm>
#include <array>

#include "kernels/parts/check.hpp"

namespace weir {
namespace {

/// A page's worth, so that the rows' pieces are long and their sums stay in the first cache.
constexpr std::size_t kColumnTile = 1024;

void add_bias(std::span<const float> b, std::span<float> line) {
  for (std::size_t c = 0; c < line.size(); ++c) line[c] += b[c];
}

void apply(Activation activation, std::span<float> line) {
  if (activation == Activation::kNone) return;
  for (float& value : line) value = value < 0.0F ? 0.0F : value;
}

/// Sums `columns` neighbouring columns, at most kColumnTile. `row_of(r)` returns the start of row r
/// of them; called once for each row, in order.
template <typename RowOf>
void sum_columns(std::size_t rows, std::size_t columns, const RowOf& row_of, float* sums) {
  std::array<float, kColumnTile> total;
  std::array<float, kColumnTile> run;
  std::fill_n(total.begin(), columns, 0.0F);
  for (std::size_t begin = 0; begin < rows; begin += kBiasGradientRows) {
    const std::size_t end = std::min(rows, begin + kBiasGradientRows);
    std::fill_n(run.begin(), columns, 0.0F);
    for (std::size_t row = begin; row < end; ++row) {
      const float* const line = row_of(row);
      for (std::size_t c = 0; c < columns; ++c) run[c] += line[c];
    }
    for (std::size_t c = 0; c < columns; ++c) total[c] += run[c];
  }
  std::copy_n(total.begin(), columns, sums);
}

}  // namespace

void require_forward(DenseShape shape, std::size_t x, std::size_t w, std::size_t b, std::size_t y) {
  require_matrix({"dense_forward", "x"}, x, shape.m, shape.k);
  require_matrix({"dense_forward", "w"}, w, shape.k, shape.n);
  require_elements({"dense_forward", "b"}, b, shape.n);
  require_matrix({"dense_forward", "y"}, y, shape.m, shape.n);
}

void require_weight_gradient(DenseShape shape, std::size_t x, std::size_t dy, std::size_t dw) {
  require_matrix({"dense_weight_gradient", "x"}, x, shape.m, shape.k);
  require_matrix({"dense_weight_gradient", "dy"}, dy, shape.m, shape.n);
  require_matrix({"dense_weight_gradient", "dw"}, dw, shape.k, shape.n);
}

void require_input_gradient(DenseShape shape, std::size_t dy, std::size_t w, std::size_t dx) {
  require_matrix({"dense_input_gradient", "dy"}, dy, shape.m, shape.n);
  require_matrix({"dense_input_gradient", "w"}, w, shape.k, shape.n);
  require_matrix({"dense_input_gradient", "dx"}, dx, shape.m, shape.k);
}

void forward_in_float32(DenseShape shape, std::span<const float> x, std::span<const float> w,
                        std::span<const float> b, std::span<float> y, Activation activation) {
  for (std::size_t row = 0; row < shape.m; ++row) {
    std::ranges::copy(b, y.begin() + static_cast<std::ptrdiff_t>(row * shape.n));
  }
  gemm(Precision::kFloat32, {.m = shape.m, .n = shape.n, .k = shape.k}, x, w, y, {.beta = 1});
  apply(activation, y);
}

void bias_activation(DenseShape shape, std::span<const float> b, std::span<float> y,
                     Activation activation) {
  require_elements({"bias_activation", "b"}, b.size(), shape.n);
  require_matrix({"bias_activation", "y"}, y.size(), shape.m, shape.n);
  for (std::size_t row = 0; row < shape.m; ++row) {
    const std::span<float> line = y.subspan(row * shape.n, shape.n);
    add_bias(b, line);
    apply(activation, line);
  }
}

void dense_bias_gradient(DenseShape shape, std::span<const float> dy, std::span<float> db) {
  require_matrix({"dense_bias_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_elements({"dense_bias_gradient", "db"}, db.size(), shape.n);
  for (std::size_t begin = 0; begin < shape.n; begin += kColumnTile) {
    const std::size_t columns = std::min(kColumnTile, shape.n - begin);
    const auto row_of = [=](std::size_t row) { return dy.data() + row * shape.n + begin; };
    sum_columns(shape.m, columns, row_of, db.data() + begin);
  }
}

void relu_backward(std::span<const float> y, std::span<float> dy) {
  require_elements({"relu_backward", "dy"}, dy.size(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float gradient = dy[i];  // read unconditionally, so that the compiler needs no branch
    dy[i] = y[i] > 0.0F ? gradient : 0.0F;
  }
}

void relu_and_bias_gradient(DenseShape shape, std::span<const float> y, std::span<float> dy,
                            std::span<float> db) {
  require_matrix({"relu_and_bias_gradient", "y"}, y.size(), shape.m, shape.n);
  require_matrix({"relu_and_bias_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_elements({"relu_and_bias_gradient", "db"}, db.size(), shape.n);
  for (std::size_t begin = 0; begin < shape.n; begin += kColumnTile) {
    const std::size_t columns = std::min(kColumnTile, shape.n - begin);
    const auto row_of = [=](std::size_t row) {
      const std::size_t at = row * shape.n + begin;
      relu_backward(y.subspan(at, columns), dy.subspan(at, columns));
      return dy.data() + at;
    };
    sum_columns(shape.m, columns, row_of, db.data() + begin);
  }
}

}  // namespace weir
