#include "kernels/blas/blas_mixed.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/blas/mixed_checks.hpp"
#include "kernels/parts/check.hpp"

namespace weir {
namespace {

/// Rows and columns of a tile. As large as OpenBLAS needs to run at its full rate.
constexpr std::size_t kTile = 512;

/// A number of a stored matrix as the float that the product uses.
struct Tf32Number {
  static float read(float value) { return tf32_of_float(value); }
};
template <HalfKind Kind>
struct HalfNumber {
  static float read(std::uint16_t word) { return float_of_half<Kind>(word); }
  static std::uint16_t written(float value) { return half_of_float<Kind>(value); }
};

/// Part of a dimension.
struct Range {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// Calls `body` for the parts of 0 ... count - 1, at most kTile long, in order.
template <typename Body>
void for_each_part(std::size_t count, const Body& body) {
  for (std::size_t begin = 0; begin < count; begin += kTile) {
    body(Range{begin, std::min(kTile, count - begin)});
  }
}

/// A factor: op(matrix) has `rows` x `columns` elements.
template <typename Number, typename T>
class Factor {
 public:
  Factor(const T* data, Transpose transpose, std::size_t rows, std::size_t columns)
      : data_(data),
        turned_(transpose == Transpose::kYes),
        stride_(turned_ ? rows : columns),
        tile_(std::min(rows, kTile) * std::min(columns, kTile)) {}

  /// Returns the tile as floats, stored as the matrix is. Valid until the next call.
  std::span<const float> tile(Range rows, Range columns) {
    if (turned_) std::swap(rows, columns);
    float* out = tile_.data();
    for (std::size_t row = rows.begin; row < rows.begin + rows.count; ++row) {
      const T* const line = data_ + row * stride_ + columns.begin;
      for (std::size_t c = 0; c < columns.count; ++c) out[c] = Number::read(line[c]);
      out += columns.count;
    }
    return std::span(tile_).first(rows.count * columns.count);
  }

 private:
  const T* data_;
  bool turned_;
  std::size_t stride_;
  std::vector<float> tile_;
};

/// Calls `store(row, column, sums)` for each piece of a row of alpha * op(a) * op(b).
template <typename Number, typename T, typename Store>
void multiply(GemmShape shape, const T* a, const T* b, GemmOptions options, const Store& store) {
  if (shape.m == 0 || shape.n == 0) return;
  Factor<Number, T> left(a, options.a, shape.m, shape.k);
  Factor<Number, T> right(b, options.b, shape.k, shape.n);
  std::vector<float> sums(std::min(shape.m, kTile) * std::min(shape.n, kTile));
  for_each_part(shape.m, [&](Range rows) {
    for_each_part(shape.n, [&](Range columns) {
      const auto tile = std::span(sums).first(rows.count * columns.count);
      std::ranges::fill(tile, 0.0F);
      for_each_part(shape.k, [&](Range inner) {
        gemm({.m = rows.count, .n = columns.count, .k = inner.count}, left.tile(rows, inner),
             right.tile(inner, columns), tile,
             {.a = options.a, .b = options.b, .alpha = options.alpha, .beta = 1.0F});
      });
      for (std::size_t row = 0; row < rows.count; ++row) {
        store(rows.begin + row, columns.begin, tile.subspan(row * columns.count, columns.count));
      }
    });
  });
}

/// For a result of floats.
template <typename Number, typename T>
void multiply_to_floats(GemmShape shape, std::span<const T> a, std::span<const T> b,
                        std::span<float> c, GemmOptions options) {
  const auto store = [&](std::size_t row, std::size_t column, std::span<const float> sums) {
    float* const out = c.data() + row * shape.n + column;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      out[i] = options.beta == 0.0F ? sums[i] : sums[i] + options.beta * out[i];
    }
  };
  multiply<Number>(shape, a.data(), b.data(), options, store);
}

template <typename Number>
void multiply_to_words(GemmShape shape, std::span<const std::uint16_t> a,
                       std::span<const std::uint16_t> b, std::span<std::uint16_t> c,
                       GemmOptions options) {
  const auto store = [&](std::size_t row, std::size_t column, std::span<const float> sums) {
    std::ranges::transform(sums, c.data() + row * shape.n + column, Number::written);
  };
  multiply<Number>(shape, a.data(), b.data(), options, store);
}

void require_sizes(GemmShape shape, std::size_t a, std::size_t b, std::size_t c) {
  require_matrix({"gemm", "a"}, a, shape.m, shape.k);
  require_matrix({"gemm", "b"}, b, shape.k, shape.n);
  require_matrix({"gemm", "c"}, c, shape.m, shape.n);
}

}  // namespace

void gemm(Precision precision, GemmShape shape, std::span<const float> a, std::span<const float> b,
          std::span<float> c, GemmOptions options) {
  require_float_factors(precision);
  if (precision == Precision::kFloat32) return gemm(shape, a, b, c, options);
  require_sizes(shape, a.size(), b.size(), c.size());
  multiply_to_floats<Tf32Number>(shape, a, b, c, options);
}

void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<float> c, GemmOptions options) {
  require_sizes(shape, a.size(), b.size(), c.size());
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? multiply_to_floats<HalfNumber<HalfKind::kBf16>, std::uint16_t>
        : multiply_to_floats<HalfNumber<HalfKind::kFp16>, std::uint16_t>)(shape, a, b, c, options);
}

void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<std::uint16_t> c, GemmOptions options) {
  require_sizes(shape, a.size(), b.size(), c.size());
  require_overwriting(options);
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? multiply_to_words<HalfNumber<HalfKind::kBf16>>
        : multiply_to_words<HalfNumber<HalfKind::kFp16>>)(shape, a, b, c, options);
}

}  // namespace weir
