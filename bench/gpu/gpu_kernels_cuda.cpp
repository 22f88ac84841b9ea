#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string>
#include <utility>

#include "bench/gpu/gpu_kernels.hpp"
#include "bench/gpu/gpu_timer_cuda.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sums/reduce.hpp"

namespace weir::bench {
namespace {

/// The input sizes. A large input has `side` squared elements.
struct KernelSizes {
  std::size_t side = 0;
  std::size_t columns = 0;  ///< columns of a wide matrix with as many elements
  int runs = 0;
  std::array<DenseShape, 2> products;
};
/// 256 MiB of floats, several times the cache of current devices.
constexpr KernelSizes kMeasuredKernels{8192, 1024, 51, {{{1024, 1024, 1024}, {8192, 1024, 4096}}}};
constexpr KernelSizes kSmallKernels{64, 32, 3, {{{32, 32, 32}, {64, 32, 48}}}};

/// All kernel inputs. Values are from N(0, 1), because multiplying zeros draws less power, which
/// may allow a higher clock than in real work.
class Rig {
 public:
  explicit Rig(const KernelSizes& sizes) : sizes_(sizes), times_(sizes.runs) {
    // Another stream cleared the buffers.
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  std::vector<KernelTime> run() {
    time_floors();
    time_elementwise();
    time_losses();
    time_layer();
    time_products();
    return times_.take();
  }

 private:
  void draw();
  void time_floors();
  void time_elementwise();
  void time_losses();
  void time_layer();
  void time_products();

  /// Times a kernel on all elements of an input. It moves `floats` arrays of that size.
  template <typename Enqueue>
  void arrays(std::string name, double floats, const Enqueue& enqueue) {
    times_.memory(std::move(name), shape_, floats * kFloat * static_cast<double>(count_), enqueue);
  }
  /// Times an m x n matrix product with inner dimension k.
  template <typename Enqueue>
  void product(std::string name, DenseShape shape, const Enqueue& enqueue) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    KernelTime& time = times_.timed(
        std::move(name),
        std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" + std::to_string(shape.n),
        enqueue);
    time.flops = 2 * m * n * k;
    time.bytes = kFloat * (m * k + k * n + m * n);
    time.floor_of = "sgemm";
    time.floor = time.flops / flops_per_microsecond_;
  }

  KernelSizes sizes_;
  std::size_t count_ = sizes_.side * sizes_.side;
  std::string shape_ = "2^" + std::to_string(std::countr_zero(count_));
  cuda::CublasHandle blas_;
  DeviceBuffer<float> workspace_{cuda::kWorkspaceElements};
  DeviceBuffer<float> a_{count_};
  DeviceBuffer<float> b_{count_};
  DeviceBuffer<float> c_{count_};
  DeviceBuffer<float> d_{count_};
  DeviceBuffer<float> one_{1};
  KernelTimes times_;
  double flops_per_microsecond_ = 1;
};

/// Replaces the results of earlier kernels by fresh values.
void Rig::draw() {
  std::uint64_t random_stream = 0;
  for (DeviceBuffer<float>* buffer : {&a_, &b_, &c_, &d_}) {
    cuda::fill_normal(times_.stream(), 1, ++random_stream, buffer->all());
  }
}

void Rig::time_floors() {
  const cudaStream_t stream = times_.stream();
  draw();
  KernelTime& copy = times_.timed("copy", shape_, [&] {
    check_cuda(cudaMemcpyAsync(b_.all().data(), a_.all().data(), a_.all().size_bytes(),
                               cudaMemcpyDeviceToDevice, stream),
               "cudaMemcpyAsync");
  });
  copy.bytes = 2 * kFloat * static_cast<double>(count_);
  copy.floor_of = copy.name;
  copy.floor = copy.microseconds;
  times_.set_copied_bytes(copy.bytes / copy.microseconds);

  const GemmShape square{.m = sizes_.side, .n = sizes_.side, .k = sizes_.side};
  const std::string width = std::to_string(sizes_.side);
  KernelTime& sgemm = times_.timed("sgemm", width + "x" + width + "x" + width, [&] {
    gemm(blas_, stream, Precision::kFloat32, square, a_.all(), b_.all(), c_.all(), {},
         workspace_.all());
  });
  const auto side = static_cast<double>(sizes_.side);
  sgemm.flops = 2 * side * side * side;
  sgemm.bytes = 3 * kFloat * static_cast<double>(count_);
  sgemm.floor_of = sgemm.name;
  sgemm.floor = sgemm.microseconds;
  flops_per_microsecond_ = sgemm.flops / sgemm.microseconds;
}

void Rig::time_elementwise() {
  const cudaStream_t stream = times_.stream();
  draw();
  const auto a = a_.all();
  const auto b = b_.all();
  const auto c = c_.all();
  arrays("fill", 1, [&] { cuda::fill(stream, a, 0.0F); });
  arrays("add", 3, [&] { cuda::add(stream, a, b); });
  arrays("scale", 2, [&] { cuda::scale(stream, -1.0F, a); });
  arrays("sgd", 3, [&] { cuda::sgd(stream, a, b, 0.1F); });
  arrays("sgd_momentum", 5, [&] { cuda::sgd_momentum(stream, a, b, c, 0.1F, 0.9F); });
  arrays("relu_backward", 3, [&] { cuda::relu_backward(stream, a, b); });
  arrays("fill_normal", 1, [&] { cuda::fill_normal(stream, 1, 2, d_.all()); });
}

void Rig::time_losses() {
  const cudaStream_t stream = times_.stream();
  draw();
  const auto a = a_.all();
  const auto b = b_.all();
  const auto one = one_.all();
  const auto scratch = workspace_.all();
  arrays("sum", 1, [&] { cuda::sum(stream, a, one, scratch); });
  arrays("squared_distance", 2, [&] { cuda::squared_distance(stream, a, b, one, scratch); });
  arrays("l2_loss", 2, [&] { cuda::l2_loss(stream, a, b, one, scratch); });
  arrays("l2_loss_gradient", 3, [&] { cuda::l2_loss_gradient(stream, a, b, c_.all()); });

  for (const LogitShape shape :
       {LogitShape{count_ / 16, 16}, LogitShape{count_ / sizes_.columns, sizes_.columns}}) {
    const std::string text = std::to_string(shape.rows) + "x" + std::to_string(shape.classes);
    const auto labels = b_.first(shape.rows);
    cuda::fill(stream, labels, 0.0F);
    const double logits = kFloat * static_cast<double>(count_);
    const double given = logits + kFloat * static_cast<double>(shape.rows);
    times_.memory("softmax_cross_entropy", text, given,
                  [&] { cuda::softmax_cross_entropy(stream, shape, a, labels, one, scratch); });
    times_.memory("softmax_cross_entropy_gradient", text, given + logits, [&] {
      cuda::softmax_cross_entropy_gradient(stream, shape, a, labels, c_.all());
    });
    times_.memory("count_correct", text, given,
                  [&] { cuda::count_correct(stream, shape, a, labels, one, scratch); });
  }
}

void Rig::time_layer() {
  const cudaStream_t stream = times_.stream();
  draw();
  const DenseShape shape{.m = count_ / sizes_.columns, .k = 1, .n = sizes_.columns};
  const std::string text = std::to_string(shape.m) + "x" + std::to_string(shape.n);
  const double matrix = kFloat * static_cast<double>(count_);
  const double row = kFloat * static_cast<double>(shape.n);
  const auto bias = d_.first(shape.n);
  const auto scratch = workspace_.all();
  times_.memory("bias_activation", text, 2 * matrix + row,
                [&] { cuda::bias_activation(stream, shape, bias, a_.all(), Activation::kRelu); });
  times_.memory("dense_bias_gradient", text, matrix + row,
                [&] { cuda::dense_bias_gradient(stream, shape, a_.all(), bias, scratch); });
  times_.memory("relu_and_bias_gradient", text, 3 * matrix + row, [&] {
    cuda::relu_and_bias_gradient(stream, shape, a_.all(), b_.all(), bias, scratch);
  });
}

void Rig::time_products() {
  const cudaStream_t stream = times_.stream();
  for (const DenseShape shape : sizes_.products) {
    draw();
    const auto x = a_.first(shape.m * shape.k);
    const auto w = b_.first(shape.k * shape.n);
    const auto y = c_.first(shape.m * shape.n);
    const auto bias = d_.first(shape.n);
    const auto scratch = workspace_.all();
    product("dense_forward", shape, [&] {
      cuda::dense_forward(blas_, stream, Precision::kFloat32, shape, x, w, bias, y,
                          Activation::kRelu, scratch);
    });
    product("dense_weight_gradient", shape, [&] {
      cuda::dense_weight_gradient(blas_, stream, Precision::kFloat32, shape, x, y, w, scratch);
    });
    product("dense_input_gradient", shape, [&] {
      cuda::dense_input_gradient(blas_, stream, Precision::kFloat32, shape, y, w, x, scratch);
    });
  }
}

}  // namespace

std::string device_name() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

std::vector<KernelTime> time_kernels(InputSize size) {
  std::vector<KernelTime> times =
      Rig(size == InputSize::kSmall ? kSmallKernels : kMeasuredKernels).run();
  const DeviceRates rates{.copied_bytes = times[0].bytes / times[0].microseconds,
                          .float_flops = times[1].flops / times[1].microseconds};
  std::ranges::move(time_precisions(size, rates), std::back_inserter(times));
  std::ranges::move(time_updates(size, rates.copied_bytes), std::back_inserter(times));
  std::ranges::move(time_sparse(size, rates.copied_bytes), std::back_inserter(times));
  return times;
}

}  // namespace weir::bench
