#include "kernels/precision/precision.hpp"

#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/parts/step_state.hpp"

namespace weir {
namespace {

/// Does not stop at the first one, so that the compiler can test several at once.
bool all_finite(std::span<const float> x) {
  std::uint32_t bad = 0;
  for (const float value : x) bad |= is_finite(value) ? 0U : 1U;
  return bad == 0;
}

}  // namespace

void to_half(std::span<const float> x, std::span<std::uint16_t> words, HalfKind kind) {
  require_elements({"to_half", "words"}, words.size(), x.size());
  with_half(kind, [=]<HalfKind Kind>() {
    for (std::size_t i = 0; i < x.size(); ++i) words[i] = half_of_float<Kind>(x[i]);
  });
}

void flag_not_finite(std::span<const float> x, std::span<float> state) {
  StepState now = load_step_state(state);
  if (all_finite(x)) return;
  now.overflow = 1;
  store_step_state(now, state);
}

void scale_to_half(std::span<const float> state, std::span<float> x, std::span<std::uint16_t> words,
                   HalfKind kind) {
  require_elements({"scale_to_half", "words"}, words.size(), x.size());
  const float alpha = load_step_state(state).loss_scale;
  with_half(kind, [=]<HalfKind Kind>() {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] *= alpha;
      words[i] = half_of_float<Kind>(x[i]);
    }
  });
}

}  // namespace weir
