#include "kernels/sgd.hpp"

#include <cstddef>

#include "kernels/parts/check.hpp"

namespace weir {

void sgd(std::span<float> w, std::span<const float> g, float lr) {
  require_elements({"sgd", "g"}, g.size(), w.size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= lr * g[i];
}

void sgd_momentum(std::span<float> w, std::span<const float> g, std::span<float> v, float lr,
                  float momentum) {
  require_elements({"sgd_momentum", "g"}, g.size(), w.size());
  require_elements({"sgd_momentum", "v"}, v.size(), w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    v[i] = momentum * v[i] + g[i];
    w[i] -= lr * v[i];
  }
}

}  // namespace weir
