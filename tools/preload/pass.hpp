#pragma once

// How a hook gives a call to the driver.

#include "tools/preload/driver.hpp"

namespace weir::preload {

/// The driver's own function, called; its code. "Not initialized" where there is no driver, and
/// "not supported" where it is too old for this function.
template <typename F, typename... Args>
CUresult pass(F Driver::*function, Args... args) noexcept {
  const Driver* const d = driver();
  if (d == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return d->*function != nullptr ? (d->*function)(args...) : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace weir::preload
