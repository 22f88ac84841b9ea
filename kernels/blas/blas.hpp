#pragma once

// Matrix products by OpenBLAS, on row-major matrices without gaps between the rows.
//
// The bits of a product depend on the number of BLAS threads and on the processor's type, because
// both choose how a sum is cut. A program whose results must repeat sets the number itself.

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
  float beta = 0.0F;  ///< 0: c is written only, whatever it held
};

/// c = alpha * op(a) * op(b) + beta * c, BLAS `sgemm`.
///
/// a holds m x k elements (k x m when transposed), b k x n (n x k when transposed), c m x n. With
/// k = 0 the product is zero. c must not overlap a or b. Throws UsageError, with c untouched, when
/// a size does not fit its matrix or a dimension exceeds BLAS's integer. Thread-safe for disjoint
/// c.
void gemm(GemmShape shape, std::span<const float> a, std::span<const float> b, std::span<float> c,
          GemmOptions options = {});

/// Sets how many threads each later product may use, for the whole process. Throws UsageError when
/// below 1. Not while a product runs.
void set_blas_threads(int threads);

/// The machine refuses the BLAS its working memory. A process in which that happened must end by
/// std::_Exit: OpenBLAS's threads ask again without end, and its exit handler waits for them.
class BlasMemoryError : public Error {
 public:
  using Error::Error;
};

/// Makes the BLAS take the working memory of one product now, and makes sure that its threads can
/// have theirs: OpenBLAS asks again without end for what is refused, so a device whose first
/// product came later would hang. Throws BlasMemoryError. Products that run at the same time need
/// as much again each. Before `set_blas_threads`: each thread that the library was loaded with
/// needs some.
void reserve_blas_memory();

/// How many threads a product may use now.
[[nodiscard]] int blas_threads();

}  // namespace weir
