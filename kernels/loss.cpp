#include "kernels/loss.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/sums/reduce.hpp"

namespace weir {
namespace {

float element_count(std::string_view function, std::span<const float> p, std::span<const float> t) {
  if (p.empty()) throw UsageError(std::string(function) + ": the loss of no elements");
  require_elements({function, "t"}, t.size(), p.size());
  return static_cast<float>(p.size());
}

}  // namespace

void l2_loss(std::span<const float> p, std::span<const float> t, std::span<float> loss) {
  const float m = element_count("l2_loss", p, t);
  require_elements({"l2_loss", "loss"}, loss.size(), 1);
  loss[0] = 0.5F * (squared_distance(p, t) / m);
}

void l2_loss_gradient(std::span<const float> p, std::span<const float> t, std::span<float> dp) {
  const float m = element_count("l2_loss_gradient", p, t);
  require_elements({"l2_loss_gradient", "dp"}, dp.size(), p.size());
  for (std::size_t i = 0; i < dp.size(); ++i) dp[i] = (p[i] - t[i]) / m;
}

}  // namespace weir
