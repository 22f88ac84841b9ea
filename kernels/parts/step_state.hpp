#pragma once

/// @file
/// What all updates of a training step share: the loss scale, the overflow flag, the number of
/// steps and the powers of the betas. It lies on the device, so that no step waits for the host:
/// `kStepStateWords` words of a float tensor, aligned to 8 bytes.
///
/// A step, in stream order:
///
///   1. forward and backward pass, with the loss multiplied by `loss_scale`;
///   2. whoever finds a gradient that is not finite sets `overflow` to 1;
///   3. begin_step, the updates and end_step, see kernels/optimizer. After an overflow these change
///      the loss scale and the counters, and nothing else.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/parts/check.hpp"

namespace weir {

/// The words as they lie in memory.
struct StepState {
  float loss_scale = 1;             ///< what the gradients are multiplied by
  std::uint32_t clean_steps = 0;    ///< without an overflow, since the scale was last decided on
  std::uint32_t skipped_steps = 0;  ///< of the whole run, because of an overflow
  std::uint32_t overflow = 0;       ///< not 0: a gradient of this step is not finite
  std::uint32_t steps = 0;          ///< taken, so without the skipped ones: t
  std::uint32_t unused = 0;
  double beta1_power = 1;  ///< beta1^t. A float's error would grow with t.
  double beta2_power = 1;  ///< beta2^t
  std::array<std::uint32_t, 6> reserved{};

  friend bool operator==(const StepState&, const StepState&) = default;
};

inline constexpr std::size_t kStepStateWords = 16;
static_assert(sizeof(StepState) == kStepStateWords * sizeof(float) && alignof(StepState) == 8);

/// Copies the state from and to words in host memory, whatever their alignment. Throws UsageError
/// unless there are `kStepStateWords`.
[[nodiscard]] inline StepState load_step_state(std::span<const float> words) {
  require_elements({"load_step_state", "words"}, words.size(), kStepStateWords);
  StepState state;
  std::memcpy(static_cast<void*>(&state), words.data(), sizeof state);
  return state;
}
inline void store_step_state(const StepState& state, std::span<float> words) {
  require_elements({"store_step_state", "words"}, words.size(), kStepStateWords);
  std::memcpy(words.data(), &state, sizeof state);
}

/// Returns the state that lies in `words` of device memory, for kernels. Throws UsageError that
/// names `function` unless they are `kStepStateWords` and aligned. Thread-safe.
[[nodiscard]] inline StepState* device_step_state(const char* function,
                                                  std::span<const float> words) {
  require_elements({function, "state"}, words.size(), kStepStateWords);
  require_that(function, reinterpret_cast<std::uintptr_t>(words.data()) % alignof(StepState) == 0,
               "state must be aligned to 8 bytes");
  return reinterpret_cast<StepState*>(const_cast<float*>(words.data()));
}

}  // namespace weir
