#pragma once

// Matrix products by OpenBLAS and cuBLAS, on row-major matrices without gaps between the rows, in a
// chosen precision with sums in float32.
//
// On the CPU the bits of a product depend on the number of BLAS threads and the processor's type,
// because both decide how a sum is split. A program that needs repeatable results sets the number
// itself. A factor of a shorter format is rounded to it and the product is float32's, so that a run
// shows what the precision costs in accuracy; nothing gets faster. Such a product works in tiles,
// with 3 MiB of memory of its own whatever the matrices' sizes.
//
// On a device the first handle loads cuBLAS, so that a program starts without it installed. The
// bits repeat from run to run for one library version, kind of device, shape and workspace size.
// The library promises this for devices of the same architecture and number of multiprocessors,
// unless several streams are busy and it chooses their workspaces itself; a caller's own workspace
// for each stream prevents that. Source: cuBLAS documentation, section "Results reproducibility".
// The bits differ from the CPU's: |error| <= (k + 1) 2^-24 sum |a b| to first order, in whatever
// order the sum is taken. In shorter formats a tensor core may cut off where the CPU rounds, and
// aligns several products before it adds them. Source: M. Fasi and others, "Numerical behavior of
// NVIDIA tensor cores", PeerJ Computer Science 7 (2021), which found this on a V100, a T4 and an
// A100 (unverified on later ones). So the tests allow a device's sum four times the error of the
// CPU's: (k + 1) 2^-22 sum |a b|.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "allocator/base/error.hpp"
#include "kernels/parts/stream.hpp"
#include "kernels/precision/precision.hpp"

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
///
/// kTf32 rounds a and b to tf32 on the way. Throws UsageError for the formats of 16 bits, whose
/// factors are words.
void gemm(Precision precision, GemmShape shape, std::span<const float> a, std::span<const float> b,
          std::span<float> c, GemmOptions options = {});

/// The same of 16-bit factors. The product of two of their numbers is exact in float32 unless it
/// leaves its range.
void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<float> c, GemmOptions options = {});

/// The same with each sum rounded to a word at its end. fp16 turns large ones into infinities. Also
/// throws UsageError unless beta is 0: a sum over several products belongs in float32.
void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<std::uint16_t> c, GemmOptions options = {});

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

/// What products in a precision require on every device.
void require_product(GemmShape shape, std::size_t a, std::size_t b, std::size_t c);
void require_float_factors(Precision precision);
void require_overwriting(GemmOptions options);

}  // namespace weir

struct cublasContext;

namespace weir::cuda {

/// A cuBLAS handle for the device current at construction. Thread-safe by its own lock: products of
/// one handle are enqueued one after the other. Destroy it before its device is reset.
class CublasHandle {
 public:
  /// Throws UsageError if cuBLAS is not found, Error if it fails.
  CublasHandle();
  ~CublasHandle();
  CublasHandle(const CublasHandle&) = delete;
  CublasHandle& operator=(const CublasHandle&) = delete;
  CublasHandle(CublasHandle&&) = delete;
  CublasHandle& operator=(CublasHandle&&) = delete;

 private:
  friend class CublasUse;

  std::mutex mutex_;  ///< guards the handle's stream and workspace between calls
  cublasContext* context_ = nullptr;
};

/// The products on a device, enqueued on `stream`: in a precision, and of 16-bit factors.
/// kTf32 lets the tensor cores take a and b as tf32 (see tf32_of_float for how they round); plain
/// float32 never does: TF32 keeps only 10 bits of each factor's mantissa, too few to check a
/// gradient against the CPU's. Throw UsageError as on the CPU, and if the workspace is too small or
/// misaligned; Error if cuBLAS fails.
void gemm(CublasHandle& handle, Stream stream, Precision precision, GemmShape shape,
          std::span<const float> a, std::span<const float> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace);
void gemm(CublasHandle& handle, Stream stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace);
void gemm(CublasHandle& handle, Stream stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
          std::span<std::uint16_t> c, GemmOptions options, std::span<float> workspace);

}  // namespace weir::cuda
