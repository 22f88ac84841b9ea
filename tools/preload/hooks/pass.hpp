#pragma once

// How a hook passes a call to the driver, and counts what that serves.

#include "tools/preload/driver/driver.hpp"
#include "tools/preload/process/entry.hpp"
#include "tools/preload/process/process.hpp"

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

[[nodiscard]] inline std::uint64_t number(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}
[[nodiscard]] inline std::uint64_t number(std::uint64_t handle) noexcept { return handle; }

/// The device's account, where Weir follows this call.
struct Counting {
  Process* process = Process::get();
  Account* account = process != nullptr ? process->current_account() : nullptr;
};

/// Makes room for `bytes` in the budget, lets the driver serve them by `call`, and counts them
/// under the handle in `made`. If the driver has no room, first gives back what the pools cache.
template <typename Call, typename Handle>
CUresult counted(const Counting& here, CUcontext context, Kind kind, Bytes bytes, const Call& call,
                 const Handle* made) noexcept {
  if (here.account == nullptr) return call();
  if (!here.process->make_room(*here.account, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult code = call();
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    (void)here.process->trim(*here.account, bytes);
    code = call();
  }
  if (code != CUDA_SUCCESS) {
    here.account->give_back(bytes);
    return code;
  }
  here.process->count(*here.account, kind, bytes, number(*made), context);
  return code;
}

}  // namespace weir::preload
