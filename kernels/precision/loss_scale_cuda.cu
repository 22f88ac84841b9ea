#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/parts/step_state_cuda.hpp"
#include "kernels/precision/loss_scale_cuda.hpp"
#include "kernels/precision/words_cuda.hpp"

namespace weir::cuda {
namespace {

__device__ inline bool not_finite(float value) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  return (bits_of_float(value) & kExponent) == kExponent;
}

struct FlagNotFinite {
  static constexpr std::size_t kGroup = 4;
  const float* x;
  StepState* state;

  // Threads that find one all write the same word, so their order does not matter.
  __device__ void one(std::size_t i) const {
    if (not_finite(x[i])) state->overflow = 1;
  }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(x + i);
    if (not_finite(a.x) || not_finite(a.y) || not_finite(a.z) || not_finite(a.w)) {
      state->overflow = 1;
    }
  }
};

__device__ inline float4 times(float4 a, float scale) {
  return float4{rounded_multiply(a.x, scale), rounded_multiply(a.y, scale),
                rounded_multiply(a.z, scale), rounded_multiply(a.w, scale)};
}

struct ScaleBy {
  static constexpr std::size_t kGroup = 4;
  const StepState* state;
  float* x;

  __device__ void one(std::size_t i) const { x[i] = rounded_multiply(x[i], state->loss_scale); }
  __device__ void group(std::size_t i) const {
    store_four(x + i, times(load_four(x + i), state->loss_scale));
  }
};

template <HalfKind Kind>
struct ScaleToHalf {
  static constexpr std::size_t kGroup = 8;
  const StepState* state;
  float* x;
  std::uint16_t* words;

  __device__ void one(std::size_t i) const {
    const float scaled = rounded_multiply(x[i], state->loss_scale);
    x[i] = scaled;
    words[i] = half_of_float<Kind>(scaled);
  }
  __device__ void group(std::size_t i) const {
    const float scale = state->loss_scale;
    const float4 low = times(load_four(x + i), scale);
    const float4 high = times(load_four(x + i + 4), scale);
    store_four(x + i, low);
    store_four(x + i + 4, high);
    store_eight<Kind>(words + i, low, high);
  }
};

template <HalfKind Kind>
void launch_scale_to_half(cudaStream_t stream, const StepState* state, std::span<float> x,
                          std::uint16_t* words) {
  launch_each("scale_to_half", stream, ScaleToHalf<Kind>{state, x.data(), words}, x.size(),
              x.data(), words);
}

}  // namespace

void flag_not_finite(cudaStream_t stream, std::span<const float> x, std::span<float> state) {
  StepState* const found = device_step_state("flag_not_finite", state);
  launch_each("flag_not_finite", stream, FlagNotFinite{x.data(), found}, x.size(), x.data());
}

void scale_by(cudaStream_t stream, std::span<const float> state, std::span<float> x) {
  const StepState* const found = device_step_state("scale_by", state);
  launch_each("scale_by", stream, ScaleBy{found, x.data()}, x.size(), x.data());
}

void scale_to_half(cudaStream_t stream, std::span<const float> state, std::span<float> x,
                   std::span<std::uint16_t> words, HalfKind kind) {
  require_elements({"scale_to_half", "words"}, words.size(), x.size());
  const StepState* const found = device_step_state("scale_to_half", state);
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? launch_scale_to_half<HalfKind::kBf16>
        : launch_scale_to_half<HalfKind::kFp16>)(stream, found, x, words.data());
}

}  // namespace weir::cuda
