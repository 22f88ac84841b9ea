#include "kernels/optimizer/step_cuda.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/step_state_cuda.hpp"

namespace weir::cuda {
namespace {

__global__ void begin_kernel(StepState* state, double beta1, double beta2) {
  *state = begun(*state, beta1, beta2);
}

__global__ void end_kernel(StepState* state, LossScaling scaling) {
  *state = ended(*state, scaling);
}

}  // namespace

void begin_step(cudaStream_t stream, std::span<float> state, double beta1, double beta2) {
  require_betas("begin_step", beta1, beta2);
  StepState* const on_device = device_step_state("begin_step", state);
  launch("begin_step", begin_kernel, {}, stream, on_device, beta1, beta2);
}

void end_step(cudaStream_t stream, std::span<float> state, const LossScaling& scaling) {
  require_scaling("end_step", scaling);
  launch("end_step", end_kernel, {}, stream, device_step_state("end_step", state), scaling);
}

}  // namespace weir::cuda
