#include <cstddef>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "kernels/loss_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sums/squares_cuda.hpp"

namespace weir::cuda {
namespace {

struct Gradient {
  static constexpr std::size_t kGroup = 4;
  const float* p;
  const float* t;
  float* dp;
  float m;

  __device__ float slope(float prediction, float target) const {
    return rounded_add(prediction, -target) / m;
  }
  __device__ void one(std::size_t i) const { dp[i] = slope(p[i], t[i]); }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(p + i);
    const float4 b = load_four(t + i);
    store_four(dp + i, float4{slope(a.x, b.x), slope(a.y, b.y), slope(a.z, b.z), slope(a.w, b.w)});
  }
};

float element_count(std::string_view function, std::span<const float> p, std::span<const float> t) {
  if (p.empty()) throw UsageError(std::string(function) + ": the loss of no elements");
  require_elements({function, "t"}, t.size(), p.size());
  return static_cast<float>(p.size());
}

}  // namespace

void l2_loss(cudaStream_t stream, std::span<const float> p, std::span<const float> t,
             std::span<float> loss, std::span<float> workspace) {
  const float m = element_count("l2_loss", p, t);
  require_elements({"l2_loss", "loss"}, loss.size(), 1);
  require_workspace("l2_loss", workspace);
  enqueue_squared_distance("l2_loss", stream, p, t, {.divisor = m, .factor = 0.5F}, loss.data(),
                           workspace);
}

void l2_loss_gradient(cudaStream_t stream, std::span<const float> p, std::span<const float> t,
                      std::span<float> dp) {
  const float m = element_count("l2_loss_gradient", p, t);
  require_elements({"l2_loss_gradient", "dp"}, dp.size(), p.size());
  launch_each("l2_loss_gradient", stream, Gradient{p.data(), t.data(), dp.data(), m}, p.size(),
              p.data(), t.data(), dp.data());
}

}  // namespace weir::cuda
