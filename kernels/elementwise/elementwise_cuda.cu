#include <cstddef>

#include "kernels/elementwise/elementwise_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/half.hpp"

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

/// Two halves as the two lower and the two upper bytes of a word, in the order of memory.
__device__ std::uint32_t pack(float low, float high) {
  return half_of_float(low) | (static_cast<std::uint32_t>(half_of_float(high)) << 16U);
}
__device__ float low_of(std::uint32_t pair) {
  return float_of_half(static_cast<std::uint16_t>(pair & 0xFFFFU));
}
__device__ float high_of(std::uint32_t pair) {
  return float_of_half(static_cast<std::uint16_t>(pair >> 16U));
}

struct ToHalf {
  static constexpr std::size_t kGroup = 8;
  const float* x;
  std::uint16_t* out;

  __device__ void one(std::size_t i) const { out[i] = half_of_float(x[i]); }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(x + i);
    const float4 b = load_four(x + i + 4);
    *reinterpret_cast<uint4*>(out + i) =
        uint4{pack(a.x, a.y), pack(a.z, a.w), pack(b.x, b.y), pack(b.z, b.w)};
  }
};

struct ToFloat {
  static constexpr std::size_t kGroup = 8;
  const std::uint16_t* x;
  float* out;

  __device__ void one(std::size_t i) const { out[i] = float_of_half(x[i]); }
  __device__ void group(std::size_t i) const {
    const uint4 a = *reinterpret_cast<const uint4*>(x + i);
    store_four(out + i, float4{low_of(a.x), high_of(a.x), low_of(a.y), high_of(a.y)});
    store_four(out + i + 4, float4{low_of(a.z), high_of(a.z), low_of(a.w), high_of(a.w)});
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

void to_half(cudaStream_t stream, std::span<const float> x, std::span<std::uint16_t> out) {
  require_elements({"to_half", "out"}, out.size(), x.size());
  launch_each("to_half", stream, ToHalf{x.data(), out.data()}, x.size(), x.data(), out.data());
}

void to_float(cudaStream_t stream, std::span<const std::uint16_t> x, std::span<float> out) {
  require_elements({"to_float", "out"}, out.size(), x.size());
  launch_each("to_float", stream, ToFloat{x.data(), out.data()}, x.size(), x.data(), out.data());
}

}  // namespace weir::cuda
