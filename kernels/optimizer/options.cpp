#include "kernels/optimizer/options.hpp"

#include <cmath>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/optimizer/step.hpp"
#include "kernels/parts/check.hpp"

namespace weir {

std::size_t moments_of(Optimizer optimizer) noexcept {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kMomentum:
      return 1;
    case Optimizer::kAdam:
    case Optimizer::kAdamax:
      return 2;
  }
  return 0;
}

void require_update(std::string_view function, const OptimizerOptions& options,
                    const Weights& weights) {
  require_betas(function, options.beta1, options.beta2);
  const auto require = [&](bool allowed, const std::string& what, double value) {
    if (allowed) return;
    throw UsageError(std::string(function) + ": " + what + ", found " + std::to_string(value));
  };
  const auto finite = [](double value) { return value >= 0 && std::isfinite(value); };
  require(finite(options.lr), "lr must be finite and at least 0", options.lr);
  require(finite(options.momentum), "momentum must be finite and at least 0", options.momentum);
  require(finite(options.eps) && static_cast<float>(options.eps) > 0,
          "eps must be finite and, as float, above 0", options.eps);
  const std::size_t moments = moments_of(options.optimizer);
  const std::size_t count = weights.w.size();
  require_elements({function, "first moment"}, weights.first.size(), moments > 0 ? count : 0);
  require_elements({function, "second moment"}, weights.second.size(), moments > 1 ? count : 0);
  if (!weights.copy.words.empty()) {
    require_elements({function, "copy"}, weights.copy.words.size(), count);
  }
}

}  // namespace weir
