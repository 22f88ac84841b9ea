#include "kernels/blas/blas.hpp"

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
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

}  // namespace

void gemm(GemmShape shape, std::span<const float> a, std::span<const float> b, std::span<float> c,
          GemmOptions options) {
  require_matrix({"gemm", "a"}, a.size(), shape.m, shape.k);
  require_matrix({"gemm", "b"}, b.size(), shape.k, shape.n);
  require_matrix({"gemm", "c"}, c.size(), shape.m, shape.n);
  const blasint m = blas_integer(shape.m);
  const blasint n = blas_integer(shape.n);
  const blasint k = blas_integer(shape.k);
  if (m == 0 || n == 0) return;
  cblas_sgemm(CblasRowMajor, blas_transpose(options.a), blas_transpose(options.b), m, n, k,
              options.alpha, a.data(), row_stride(options.a, m, k), b.data(),
              row_stride(options.b, k, n), options.beta, c.data(), n);
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
  gemm({kSide, kSide, kSide}, zeros, zeros, product);
}

}  // namespace

void reserve_blas_memory() {
  static std::once_flag once;  // a call that throws does not count
  std::call_once(once, reserve_now);
}

int blas_threads() { return openblas_get_num_threads(); }

}  // namespace weir
