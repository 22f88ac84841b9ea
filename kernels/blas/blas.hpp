#pragma once

// Matrix products by OpenBLAS, on row-major matrices without gaps between the rows.
//
// The bits of a product depend on the number of BLAS threads and the processor's type, because both
// decide how a sum is split. A program that needs repeatable results sets the number itself.

#include <cstddef>
#include <span>

#include "allocator/base/error.hpp"

namespace weir {

enum class Transpose { kNo, kYes };

/// c is m x n; k is the length of each sum.
struct GemmShape {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
};

struct GemmOptions {
  Transpose a = Transpose::kNo;
  Transpose b = Transpose::kNo;
  float alpha = 1.0F;
  float beta = 0.0F;  ///< 0: c is only written, whatever it held
};

/// c = alpha * op(a) * op(b) + beta * c, BLAS `sgemm`.
///
/// a has m x k elements (k x m if transposed), b k x n (n x k if transposed), c m x n. With k = 0
/// the product is zero. c must not overlap a or b. Throws UsageError and leaves c unchanged if a
/// size does not match or a dimension exceeds BLAS's integer. Thread-safe for disjoint c.
void gemm(GemmShape shape, std::span<const float> a, std::span<const float> b, std::span<float> c,
          GemmOptions options = {});

/// Sets the number of threads for later products of the whole process. Throws UsageError if below
/// 1. Not while a product runs.
void set_blas_threads(int threads);

/// The machine refused the BLAS its working memory. The process must then end by std::_Exit:
/// OpenBLAS's threads retry forever, and its exit handler waits for them.
class BlasMemoryError : public Error {
 public:
  using Error::Error;
};

/// Makes the BLAS allocate the working memory of one product now, and checks that its threads can
/// have theirs; once, later calls do nothing. OpenBLAS retries a refused allocation forever, so
/// without this a device's first product could hang. Throws BlasMemoryError. Concurrent products
/// need as much again each. Call before `set_blas_threads`: each thread that the library was loaded
/// with needs some. Call before other threads start: what they allocate meanwhile may be what the
/// BLAS was promised.
void reserve_blas_memory();

/// Returns the number of threads that a product may use now.
[[nodiscard]] int blas_threads();

}  // namespace weir
