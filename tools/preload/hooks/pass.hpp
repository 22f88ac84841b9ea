#pragma once

// How a hook passes a call to the driver.

#include "tools/preload/driver/driver.hpp"
#include "tools/preload/process/entry.hpp"

namespace weir::preload {

/// Calls the driver's own function and returns its code: "not initialized" without a driver, "not
/// supported" if it is too old. Outside any Entry.
template <typename F, typename... Args>
CUresult jump(F Driver::*function, Args... args) noexcept {
  const Driver* const d = driver();
  if (d == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return d->*function != nullptr ? (d->*function)(args...) : CUDA_ERROR_NOT_SUPPORTED;
}

/// The same in a hook's Entry.
template <typename F, typename... Args>
CUresult pass(F Driver::*function, Args... args) noexcept {
  const Entry::InDriver in_driver;
  return jump(function, args...);
}

}  // namespace weir::preload
