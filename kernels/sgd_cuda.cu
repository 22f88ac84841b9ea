#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/normal.hpp"
#include "kernels/sgd_cuda.hpp"

namespace weir::cuda {
namespace {

struct Sgd {
  static constexpr std::size_t kGroup = 4;
  float* w;
  const float* g;
  float lr;

  __device__ float step(float weight, float gradient) const {
    return rounded_add(weight, -rounded_multiply(lr, gradient));
  }
  __device__ void one(std::size_t i) const { w[i] = step(w[i], g[i]); }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(w + i);
    const float4 b = load_four(g + i);
    store_four(w + i, float4{step(a.x, b.x), step(a.y, b.y), step(a.z, b.z), step(a.w, b.w)});
  }
};

struct SgdMomentum {
  static constexpr std::size_t kGroup = 4;
  float* w;
  const float* g;
  float* v;
  float lr;
  float momentum;

  __device__ float decay(float velocity, float gradient) const {
    return rounded_add(rounded_multiply(momentum, velocity), gradient);
  }
  __device__ float step(float weight, float velocity) const {
    return rounded_add(weight, -rounded_multiply(lr, velocity));
  }
  __device__ void one(std::size_t i) const {
    const float velocity = decay(v[i], g[i]);
    const float weight = step(w[i], velocity);
    v[i] = velocity;
    w[i] = weight;
  }
  __device__ void group(std::size_t i) const {
    const float4 weights = load_four(w + i);
    const float4 gradients = load_four(g + i);
    const float4 before = load_four(v + i);
    const float4 now{decay(before.x, gradients.x), decay(before.y, gradients.y),
                     decay(before.z, gradients.z), decay(before.w, gradients.w)};
    store_four(v + i, now);
    store_four(w + i, float4{step(weights.x, now.x), step(weights.y, now.y), step(weights.z, now.z),
                             step(weights.w, now.w)});
  }
};

}  // namespace

void sgd(cudaStream_t stream, std::span<float> w, std::span<const float> g, float lr) {
  require_elements({"sgd", "g"}, g.size(), w.size());
  launch_each("sgd", stream, Sgd{w.data(), g.data(), lr}, w.size(), w.data(), g.data());
}

void sgd_momentum(cudaStream_t stream, std::span<float> w, std::span<const float> g,
                  std::span<float> v, float lr, float momentum) {
  require_elements({"sgd_momentum", "g"}, g.size(), w.size());
  require_elements({"sgd_momentum", "v"}, v.size(), w.size());
  launch_each("sgd_momentum", stream, SgdMomentum{w.data(), g.data(), v.data(), lr, momentum},
              w.size(), w.data(), g.data(), v.data());
}

}  // namespace weir::cuda
