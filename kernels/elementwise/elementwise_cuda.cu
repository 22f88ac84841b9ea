#include <cstddef>

#include "kernels/elementwise/elementwise_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/normal.hpp"

namespace weir::cuda {
namespace {

struct Fill {
  static constexpr std::size_t kGroup = 4;
  float* out;
  float value;

  __device__ void one(std::size_t i) const { out[i] = value; }
  __device__ void group(std::size_t i) const {
    store_four(out + i, float4{value, value, value, value});
  }
};

/// y += alpha x, or y += x: a product with 1 would change no bit, but would cost.
template <bool kScaled>
struct Axpy {
  static constexpr std::size_t kGroup = 4;
  float alpha;
  const float* x;
  float* y;

  __device__ float step(float total, float term) const {
    return rounded_add(total, kScaled ? rounded_multiply(alpha, term) : term);
  }
  __device__ void one(std::size_t i) const { y[i] = step(y[i], x[i]); }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(x + i);
    const float4 b = load_four(y + i);
    store_four(y + i, float4{step(b.x, a.x), step(b.y, a.y), step(b.z, a.z), step(b.w, a.w)});
  }
};

struct Scale {
  static constexpr std::size_t kGroup = 4;
  float alpha;
  float* x;

  __device__ void one(std::size_t i) const { x[i] *= alpha; }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(x + i);
    store_four(x + i, float4{a.x * alpha, a.y * alpha, a.z * alpha, a.w * alpha});
  }
};

}  // namespace

void fill(cudaStream_t stream, std::span<float> out, float value) {
  launch_each("fill", stream, Fill{out.data(), value}, out.size(), out.data());
}

void add(cudaStream_t stream, std::span<const float> x, std::span<float> total) {
  require_elements({"add", "x"}, x.size(), total.size());
  launch_each("add", stream, Axpy<false>{1.0F, x.data(), total.data()}, total.size(), x.data(),
              total.data());
}

void axpy(cudaStream_t stream, float alpha, std::span<const float> x, std::span<float> y) {
  require_elements({"axpy", "x"}, x.size(), y.size());
  launch_each("axpy", stream, Axpy<true>{alpha, x.data(), y.data()}, y.size(), x.data(), y.data());
}

void scale(cudaStream_t stream, float alpha, std::span<float> x) {
  launch_each("scale", stream, Scale{alpha, x.data()}, x.size(), x.data());
}

}  // namespace weir::cuda
