#include "kernels/precision/loss_scale.hpp"

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/step_state.hpp"

namespace weir {
namespace {

template <HalfKind Kind>
void scale_and_round(float alpha, std::span<float> x, std::uint16_t* words) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] *= alpha;
    words[i] = half_of_float<Kind>(x[i]);
  }
}

/// Does not stop at the first one, so that the compiler can test several at once.
bool all_finite(std::span<const float> x) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t not_finite = 0;
  for (const float value : x) {
    not_finite |= (bits_of_float(value) & kExponent) == kExponent ? 1U : 0U;
  }
  return not_finite == 0;
}

}  // namespace

void flag_not_finite(std::span<const float> x, std::span<float> state) {
  StepState now = load_step_state(state);
  if (all_finite(x)) return;
  now.overflow = 1;
  store_step_state(now, state);
}

void scale_by(std::span<const float> state, std::span<float> x) {
  scale(load_step_state(state).loss_scale, x);
}

void scale_to_half(std::span<const float> state, std::span<float> x, std::span<std::uint16_t> words,
                   HalfKind kind) {
  require_elements({"scale_to_half", "words"}, words.size(), x.size());
  const float alpha = load_step_state(state).loss_scale;
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? scale_and_round<HalfKind::kBf16> : scale_and_round<HalfKind::kFp16>)(alpha, x,
                                                                               words.data());
}

}  // namespace weir
