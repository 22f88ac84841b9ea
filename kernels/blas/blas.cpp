#include "kernels/blas/blas.hpp"

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"

namespace weir {
namespace {

/// The memory that OpenBLAS maps for a product on x86-64 (its BUFFER_SIZE, 32 << 22; less on other
/// processors).
constexpr std::size_t kBlasBuffer = std::size_t{130} << 20U;

blasint blas_integer(std::size_t dimension) {
  if (!std::in_range<blasint>(dimension)) {
    throw UsageError("gemm: dimension " + std::to_string(dimension) + " exceeds BLAS's largest, " +
                     std::to_string(std::numeric_limits<blasint>::max()));
  }
  return static_cast<blasint>(dimension);
}

CBLAS_TRANSPOSE blas_transpose(Transpose transpose) {
  return transpose == Transpose::kYes ? CblasTrans : CblasNoTrans;
}

/// Returns the distance between two rows, in elements; BLAS requires at least 1.
blasint row_stride(Transpose transpose, blasint rows, blasint columns) {
  return std::max<blasint>(1, transpose == Transpose::kYes ? rows : columns);
}

/// A product of floats in float32. The sizes match.
void multiply_floats(GemmShape shape, std::span<const float> a, std::span<const float> b,
                     std::span<float> c, GemmOptions options) {
  const blasint m = blas_integer(shape.m);
  const blasint n = blas_integer(shape.n);
  const blasint k = blas_integer(shape.k);
  if (m == 0 || n == 0) return;
  cblas_sgemm(CblasRowMajor, blas_transpose(options.a), blas_transpose(options.b), m, n, k,
              options.alpha, a.data(), row_stride(options.a, m, k), b.data(),
              row_stride(options.b, k, n), options.beta, c.data(), n);
}

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
        multiply_floats({.m = rows.count, .n = columns.count, .k = inner.count},
                        left.tile(rows, inner), right.tile(inner, columns), tile,
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

}  // namespace

void require_product(GemmShape shape, std::size_t a, std::size_t b, std::size_t c) {
  require_matrix({"gemm", "a"}, a, shape.m, shape.k);
  require_matrix({"gemm", "b"}, b, shape.k, shape.n);
  require_matrix({"gemm", "c"}, c, shape.m, shape.n);
}

void require_float_factors(Precision precision) {
  require_that("gemm", !half_kind(precision),
               "a precision of 16 bits needs factors of 16 bits: copy them by to_half");
}

void require_overwriting(GemmOptions options) {
  require_that("gemm", options.beta == 0.0F, "a result of 16 bits is only written: beta must be 0");
}

void gemm(Precision precision, GemmShape shape, std::span<const float> a, std::span<const float> b,
          std::span<float> c, GemmOptions options) {
  require_float_factors(precision);
  require_product(shape, a.size(), b.size(), c.size());
  if (precision == Precision::kFloat32) return multiply_floats(shape, a, b, c, options);
  multiply_to_floats<Tf32Number>(shape, a, b, c, options);
}

void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<float> c, GemmOptions options) {
  require_product(shape, a.size(), b.size(), c.size());
  with_half(kind, [&]<HalfKind Kind>() {
    multiply_to_floats<HalfNumber<Kind>>(shape, a, b, c, options);
  });
}

void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<std::uint16_t> c, GemmOptions options) {
  require_product(shape, a.size(), b.size(), c.size());
  require_overwriting(options);
  with_half(kind,
            [&]<HalfKind Kind>() { multiply_to_words<HalfNumber<Kind>>(shape, a, b, c, options); });
}

void set_blas_threads(int threads) {
  if (threads < 1) {
    throw UsageError("set_blas_threads: " + std::to_string(threads) + " threads, at least 1");
  }
  openblas_set_num_threads(threads);
}

namespace {

void reserve_now() {
  const auto threads = static_cast<std::size_t>(blas_threads());
  void* trial = mmap(nullptr, kBlasBuffer * threads, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (trial == MAP_FAILED) {
    throw BlasMemoryError("the BLAS needs 128 MiB of address space for each of its " +
                          std::to_string(threads) + " threads, which the machine refuses (" +
                          std::generic_category().message(errno) +
                          "): raise `ulimit -v`, or set OPENBLAS_NUM_THREADS=1");
  }
  munmap(trial, kBlasBuffer * threads);
  // Large enough to need that memory, which OpenBLAS avoids for small products.
  constexpr std::size_t kSide = 160;
  const std::vector<float> zeros(kSide * kSide);
  std::vector<float> product(kSide * kSide);
  multiply_floats({kSide, kSide, kSide}, zeros, zeros, product, {});
}

}  // namespace

void reserve_blas_memory() {
  static std::once_flag once;  // a call that throws does not count
  std::call_once(once, reserve_now);
}

int blas_threads() { return openblas_get_num_threads(); }

}  // namespace weir
