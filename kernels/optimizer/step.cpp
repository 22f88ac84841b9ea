#include "kernels/optimizer/step.hpp"

#include <string>

#include "allocator/base/error.hpp"

namespace weir {

void require_betas(std::string_view function, double beta1, double beta2) {
  const auto allowed = [](double beta) { return beta >= 0 && beta < 1; };
  if (allowed(beta1) && allowed(beta2)) return;
  throw UsageError(std::string(function) + ": the betas are " + std::to_string(beta1) + " and " +
                   std::to_string(beta2) + ", expected at least 0 and below 1");
}

void require_scaling(std::string_view function, const LossScaling& scaling) {
  if (scaling.least > 0 && scaling.least <= scaling.most && scaling.grow_after > 0) return;
  throw UsageError(std::string(function) + ": the loss scale is from " +
                   std::to_string(scaling.least) + " to " + std::to_string(scaling.most) +
                   ", doubled after " + std::to_string(scaling.grow_after) +
                   " steps, expected 0 < least <= most and at least one step");
}

void begin_step(std::span<float> state, double beta1, double beta2) {
  require_betas("begin_step", beta1, beta2);
  store_step_state(begun(load_step_state(state), beta1, beta2), state);
}

void end_step(std::span<float> state, const LossScaling& scaling) {
  require_scaling("end_step", scaling);
  store_step_state(ended(load_step_state(state), scaling), state);
}

}  // namespace weir
