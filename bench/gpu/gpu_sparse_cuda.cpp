#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "bench/gpu/gpu_timer_cuda.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/parts/philox.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"

namespace weir::bench {
namespace {

/// A batch's rows, the width of its inputs and how many of a row are not zero, the first layer's
/// outputs, the classes and how many of them are a row's labels.
struct SparseSizes {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t entries = 0;
  std::uint32_t outputs = 0;
  std::uint32_t classes = 0;
  std::uint32_t labels = 0;
  int runs = 0;
};
constexpr SparseSizes kWide{128, 250'000, 500, 1024, 200'000, 5, 51};
constexpr SparseSizes kNarrow{4, 400, 20, 64, 3000, 3, 3};

using Numbers = std::vector<std::uint32_t>;

/// `count` ascending numbers below `width` for each row: one at random of each of `count` equal
/// parts.
Numbers draw_ascending(std::uint32_t rows, std::uint32_t count, std::uint32_t width) {
  Numbers drawn;
  for (std::uint32_t i = 0; i < rows; ++i) {
    for (std::uint32_t e = 0; e < count; ++e) {
      const std::uint32_t part = width / count;
      drawn.push_back(e * part + philox4x32({.x = i, .y = e}, {.x = width}).x % part);
    }
  }
  return drawn;
}

/// Where each row starts, of rows of `count`.
Numbers even_starts(std::uint32_t rows, std::uint32_t count) {
  Numbers starts;
  for (std::uint32_t i = 0; i <= rows; ++i) starts.push_back(i * count);
  return starts;
}

class DeviceNumbers {
 public:
  explicit DeviceNumbers(const Numbers& numbers) : memory_(numbers.size()) {
    check_cuda(cudaMemcpy(memory_.all().data(), numbers.data(), memory_.all().size_bytes(),
                          cudaMemcpyHostToDevice),
               "cudaMemcpy");
  }
  [[nodiscard]] std::span<const std::uint32_t> all() { return memory_.all(); }

 private:
  DeviceBuffer<std::uint32_t> memory_;
};

/// All inputs. Values are from N(0, 1).
class SparseRig {
 public:
  SparseRig(const SparseSizes& sizes, double rate) : sizes_(sizes), times_(sizes.runs, rate) {
    // Another stream cleared the buffers.
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  std::vector<KernelTime> run() {
    time_layer();
    time_losses();
    return times_.take();
  }

 private:
  void time_layer();
  void time_losses();

  void draw(std::span<float> values) {
    cuda::fill_normal(times_.stream(), 1, ++random_stream_, values);
  }

  SparseSizes sizes_;
  std::uint64_t random_stream_ = 0;
  DeviceBuffer<float> workspace_{cuda::kWorkspaceElements};
  KernelTimes times_;
};

void SparseRig::time_layer() {
  const cudaStream_t stream = times_.stream();
  const Numbers columns = draw_ascending(sizes_.rows, sizes_.entries, sizes_.columns);
  const std::size_t touched = std::set(columns.begin(), columns.end()).size();
  const DenseShape shape{.m = sizes_.rows, .k = sizes_.columns, .n = sizes_.outputs};
  DeviceNumbers starts(even_starts(sizes_.rows, sizes_.entries));
  DeviceNumbers indices(columns);
  DeviceBuffer<float> values(columns.size());
  DeviceBuffer<float> w(shape.k * shape.n);
  DeviceBuffer<float> b(shape.n);
  DeviceBuffer<float> y(shape.m * shape.n);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (DeviceBuffer<float>* buffer : {&values, &w, &b, &y}) draw(buffer->all());

  const std::string text =
      std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" + std::to_string(shape.n);
  // The rows of W that are touched, X, and y.
  const double bytes = 4.0 * static_cast<double>(touched * shape.n + y.all().size()) +
                       8.0 * static_cast<double>(columns.size());
  const CsrRows x{shape.k, starts.all(), indices.all(), values.all()};
  times_.memory("csr_forward", text, bytes, [&] {
    cuda::csr_forward(stream, x, w.all(), b.all(), y.all(), Activation::kRelu);
  });
}

void SparseRig::time_losses() {
  const cudaStream_t stream = times_.stream();
  DeviceNumbers starts(even_starts(sizes_.rows, sizes_.labels));
  DeviceNumbers indices(draw_ascending(sizes_.rows, sizes_.labels, sizes_.classes));
  const SparseLabels labels{sizes_.classes, starts.all(), indices.all()};
  const std::size_t count = std::size_t{sizes_.rows} * sizes_.classes;
  DeviceBuffer<float> z(count);
  DeviceBuffer<float> dz(count);
  DeviceBuffer<float> statistics(sizes_.rows * kSoftmaxStatistics);
  DeviceBuffer<float> one(1);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  draw(z.all());

  const std::string text = std::to_string(sizes_.rows) + "x" + std::to_string(sizes_.classes);
  const double logits = 4.0 * static_cast<double>(count);
  const auto scratch = workspace_.all();
  times_.memory("softmax_loss", text, logits, [&] {
    cuda::softmax_statistics(stream, labels, z.all(), statistics.all(), scratch);
    cuda::softmax_loss(stream, labels, statistics.all(), one.all(), scratch);
  });
  times_.memory("softmax_gradient", text, 2 * logits, [&] {
    cuda::softmax_gradient(stream, labels, z.all(), statistics.all(), dz.all());
  });
  times_.memory("logistic_loss", text, logits,
                [&] { cuda::logistic_loss(stream, labels, z.all(), one.all(), scratch); });
  times_.memory("logistic_loss_and_gradient", text, 2 * logits, [&] {
    cuda::logistic_loss_and_gradient(stream, labels, z.all(), one.all(), dz.all(), scratch);
  });
  times_.memory("count_hits", text, logits,
                [&] { cuda::count_hits(stream, labels, z.all(), one.all(), scratch); });
}

}  // namespace

std::vector<KernelTime> time_sparse(InputSize size, double copied_bytes_per_microsecond) {
  return SparseRig(size == InputSize::kSmall ? kNarrow : kWide, copied_bytes_per_microsecond).run();
}

}  // namespace weir::bench
