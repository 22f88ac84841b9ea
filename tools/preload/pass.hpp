#pragma once

// How a hook gives a call to the driver.

#include "tools/preload/driver.hpp"

namespace weir::preload {

/// The driver's own function, called; its code, or "not initialized" where there is no such thing.
template <typename F, typename... Args>
CUresult pass(F Driver::*function, Args... args) noexcept {
  const Driver* const d = driver();
  if (d == nullptr || d->*function == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return (d->*function)(args...);
}

}  // namespace weir::preload
