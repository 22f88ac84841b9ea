#include <cstddef>

#include "kernels/dense_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/normal.hpp"

namespace weir::cuda {
namespace {

/// act(value + bias). A NaN stays.
template <bool kRelu>
__device__ float activate(float value, float bias) {
  const float sum = rounded_add(value, bias);
  return kRelu && sum < 0.0F ? 0.0F : sum;
}

/// y = act(y + b), rows of `columns`. Each thread advances its column without a division per step.
/// kFour: handles four neighbours of a row at once; `columns` and `count` are then in fours.
template <bool kRelu, bool kFour>
__global__ void bias_kernel(const float* b, float* y, std::size_t columns, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t start = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t step = stride % columns;
  std::size_t column = start % columns;
  for (std::size_t i = start; i < count; i += stride) {
    if (kFour) {
      const float4 bias = load_four(b + 4 * column);
      const float4 value = load_four(y + 4 * i);
      store_four(y + 4 * i,
                 float4{activate<kRelu>(value.x, bias.x), activate<kRelu>(value.y, bias.y),
                        activate<kRelu>(value.z, bias.z), activate<kRelu>(value.w, bias.w)});
    } else {
      y[i] = activate<kRelu>(y[i], b[column]);
    }
    column += step;
    if (column >= columns) column -= columns;
  }
}

struct ReluBackward {
  static constexpr std::size_t kGroup = 4;
  const float* y;
  float* dy;

  __device__ static float pass(float output, float gradient) {
    return output > 0.0F ? gradient : 0.0F;
  }
  __device__ void one(std::size_t i) const { dy[i] = pass(y[i], dy[i]); }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(y + i);
    const float4 b = load_four(dy + i);
    store_four(dy + i, float4{pass(a.x, b.x), pass(a.y, b.y), pass(a.z, b.z), pass(a.w, b.w)});
  }
};

template <bool kRelu>
void launch_bias(cudaStream_t stream, DenseShape shape, const float* b, float* y) {
  // If the first row is aligned and made of whole fours, every row is aligned, and so is b.
  const bool fours = shape.n % 4 == 0 && split_at_alignment(1, 1, b, y).groups == 1;
  const std::size_t columns = fours ? shape.n / 4 : shape.n;
  const std::size_t count = columns * shape.m;
  launch("bias_activation", fours ? bias_kernel<kRelu, true> : bias_kernel<kRelu, false>,
         grid_for(count), stream, b, y, columns, count);
}

}  // namespace

void bias_activation(cudaStream_t stream, DenseShape shape, std::span<const float> b,
                     std::span<float> y, Activation activation) {
  require_elements({"bias_activation", "b"}, b.size(), shape.n);
  require_matrix({"bias_activation", "y"}, y.size(), shape.m, shape.n);
  if (y.empty()) return;
  const bool relu = activation == Activation::kRelu;
  (relu ? launch_bias<true> : launch_bias<false>)(stream, shape, b.data(), y.data());
}

void relu_backward(cudaStream_t stream, std::span<const float> y, std::span<float> dy) {
  require_elements({"relu_backward", "dy"}, dy.size(), y.size());
  launch_each("relu_backward", stream, ReluBackward{y.data(), dy.data()}, y.size(), y.data(),
              dy.data());
}

}  // namespace weir::cuda
