#pragma once

/// @file
/// The state of step_state.hpp as device code sees it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "kernels/parts/step_state.hpp"

namespace weir::cuda {

/// Returns the state that lies in `words` of device memory, for kernels. Throws UsageError that
/// names `function` unless they are `kStepStateWords` and aligned. Thread-safe.
[[nodiscard]] inline const StepState* device_step_state(std::string_view function,
                                                        std::span<const float> words) {
  require_elements({function, "state"}, words.size(), kStepStateWords);
  if (reinterpret_cast<std::uintptr_t>(words.data()) % alignof(StepState) != 0) {
    throw UsageError(std::string(function) + ": state must be aligned to " +
                     std::to_string(alignof(StepState)) + " bytes");
  }
  return reinterpret_cast<const StepState*>(words.data());
}
[[nodiscard]] inline StepState* device_step_state(std::string_view function,
                                                  std::span<float> words) {
  return const_cast<StepState*>(device_step_state(function, std::span<const float>(words)));
}

}  // namespace weir::cuda
