#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "bench/gpu/gpu_timer_cuda.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/parts/step_state.hpp"
#include "kernels/precision/precision.hpp"

namespace weir::bench {
namespace {

struct PrecisionSizes {
  std::size_t side = 0;  ///< of the square products; a large array has `side` squared elements
  DenseShape layer;
  int runs = 0;
};
constexpr PrecisionSizes kMeasuredPrecisions{8192, {.m = 128, .k = 512, .n = 200000}, 51};
constexpr PrecisionSizes kSmallPrecisions{64, {.m = 8, .k = 16, .n = 200}, 3};

/// cuBLAS splits the input gradient's long sums over the multiprocessors and collects the parts
/// here. 32 MiB is what its documentation recommends for an H100 ("cublasSetWorkspace").
constexpr std::size_t kProductWorkspace = (std::size_t{32} << 20U) / sizeof(float);

struct Way {
  Precision precision;
  std::string name;
  std::string rate_row;  ///< the row that gives its rate
  double factor_bytes;
};
const std::array<Way, 4> kWays{{{Precision::kFloat32, "fp32", "sgemm", 4},
                                {Precision::kTf32, "tf32", "gemm_tf32", 4},
                                {Precision::kBf16, "bf16", "gemm_bf16", 2},
                                {Precision::kFp16, "fp16", "gemm_fp16", 2}}};

/// A matrix as floats, and its copy in the current format of 16 bits.
struct Matrix {
  explicit Matrix(std::size_t size) : floats(size), words(size) {}
  DeviceBuffer<float> floats;
  DeviceBuffer<std::uint16_t> words;
};

class PrecisionRig {
 public:
  PrecisionRig(const PrecisionSizes& sizes, DeviceRates rates)
      : sizes_(sizes), rates_(rates), times_(sizes.runs, rates.copied_bytes) {
    // Another stream cleared the buffers.
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::uint64_t random_stream = 0;
    for (Matrix* matrix : {&x_, &w_, &dy_}) {
      cuda::fill_normal(times_.stream(), 1, ++random_stream, matrix->floats.all());
    }
    StepState state;
    state.loss_scale = -1;  // keeps the numbers' sizes, run after run
    check_cuda(cudaMemcpy(state_.all().data(), &state, sizeof state, cudaMemcpyHostToDevice),
               "cudaMemcpy");
  }

  std::vector<KernelTime> run() {
    for (const Way& way : kWays) time_products(way);
    for (const HalfKind kind : {HalfKind::kBf16, HalfKind::kFp16}) time_conversions(kind);
    const auto all = w_.floats.first(count_);
    arrays("flag_not_finite", kFloat,
           [&] { cuda::flag_not_finite(times_.stream(), all, state_.all()); });
    return times_.take();
  }

 private:
  static constexpr double kWord = sizeof(std::uint16_t);

  void time_products(const Way& way);
  void time_conversions(HalfKind kind);

  /// Times a kernel that moves so many bytes for each element of a large array.
  template <typename Enqueue>
  void arrays(std::string name, double bytes, const Enqueue& enqueue) {
    times_.memory(std::move(name), "2^" + std::to_string(std::countr_zero(count_)),
                  bytes * static_cast<double>(count_), enqueue);
  }
  /// Times one of the layer's products, c = op(a) op(b).
  KernelTime& product(std::string name, std::string text, const Way& way, GemmShape shape,
                      Matrix& a, Matrix& b, GemmOptions options);
  /// The floor of a product: what takes longer, its bytes or its arithmetic.
  void set_floor(KernelTime& time, const Way& way, double flops_per_microsecond) const;

  PrecisionSizes sizes_;
  DeviceRates rates_;
  std::size_t count_ = sizes_.side * sizes_.side;
  std::size_t weights_ = std::max(count_, sizes_.layer.k* sizes_.layer.n);
  std::size_t outputs_ = std::max(count_, sizes_.layer.m* sizes_.layer.n);
  cuda::CublasHandle blas_;
  DeviceBuffer<float> workspace_{kProductWorkspace};
  DeviceBuffer<float> state_{kStepStateWords};
  Matrix x_{sizes_.layer.m * sizes_.layer.k};
  Matrix w_{weights_};
  Matrix dy_{outputs_};
  DeviceBuffer<float> result_{weights_};
  KernelTimes times_;
};

KernelTime& PrecisionRig::product(std::string name, std::string text, const Way& way,
                                  GemmShape shape, Matrix& a, Matrix& b, GemmOptions options) {
  const cudaStream_t stream = times_.stream();
  const auto c = result_.first(shape.m * shape.n);
  const std::size_t a_size = shape.m * shape.k;
  const std::size_t b_size = shape.k * shape.n;
  const auto multiply = [&] {
    if (const std::optional<HalfKind> kind = half_kind(way.precision)) {
      gemm(blas_, stream, *kind, shape, a.words.first(a_size), b.words.first(b_size), c, options,
           workspace_.all());
    } else {
      gemm(blas_, stream, way.precision, shape, a.floats.first(a_size), b.floats.first(b_size), c,
           options, workspace_.all());
    }
  };
  KernelTime& time = times_.timed(std::move(name), std::move(text), multiply);
  time.bytes = way.factor_bytes * static_cast<double>(a_size + b_size) +
               kFloat * static_cast<double>(c.size());
  time.flops = 2 * static_cast<double>(a_size) * static_cast<double>(shape.n);
  return time;
}

void PrecisionRig::set_floor(KernelTime& time, const Way& way, double flops_per_microsecond) const {
  const double of_bytes = time.bytes / rates_.copied_bytes;
  const double of_flops = time.flops / flops_per_microsecond;
  time.floor_of = of_bytes > of_flops ? "copy" : way.rate_row;
  time.floor = std::max(of_bytes, of_flops);
}

void PrecisionRig::time_products(const Way& way) {
  if (const std::optional<HalfKind> kind = half_kind(way.precision)) {
    for (Matrix* matrix : {&x_, &w_, &dy_}) {
      cuda::to_half(times_.stream(), matrix->floats.all(), matrix->words.all(), *kind);
    }
  }
  double flops_per_microsecond = rates_.float_flops;
  if (way.precision != Precision::kFloat32) {
    const std::size_t side = sizes_.side;
    const std::string width = std::to_string(side);
    KernelTime& square = product(way.rate_row, width + "x" + width + "x" + width, way,
                                 {.m = side, .n = side, .k = side}, dy_, w_, {});
    square.floor_of = square.name;
    square.floor = square.microseconds;
    flops_per_microsecond = square.flops / square.microseconds;
  }
  const auto [m, k, n] = sizes_.layer;
  const std::string text = std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
  set_floor(product("forward_" + way.name, text, way, {.m = m, .n = n, .k = k}, x_, w_, {}), way,
            flops_per_microsecond);
  set_floor(product("weight_gradient_" + way.name, text, way, {.m = k, .n = n, .k = m}, x_, dy_,
                    {.a = Transpose::kYes}),
            way, flops_per_microsecond);
  set_floor(product("input_gradient_" + way.name, text, way, {.m = m, .n = k, .k = n}, dy_, w_,
                    {.b = Transpose::kYes}),
            way, flops_per_microsecond);
}

void PrecisionRig::time_conversions(HalfKind kind) {
  const cudaStream_t stream = times_.stream();
  const std::string name = kind == HalfKind::kBf16 ? "bf16" : "fp16";
  const auto floats = w_.floats.first(count_);
  const auto words = w_.words.first(count_);
  arrays("to_" + name, kFloat + kWord, [&] { cuda::to_half(stream, floats, words, kind); });
  arrays("scale_to_" + name, 2 * kFloat + kWord,
         [&] { cuda::scale_to_half(stream, state_.all(), floats, words, kind); });
}

}  // namespace

std::vector<KernelTime> time_precisions(InputSize size, DeviceRates rates) {
  return PrecisionRig(size == InputSize::kSmall ? kSmallPrecisions : kMeasuredPrecisions, rates)
      .run();
}

}  // namespace weir::bench
