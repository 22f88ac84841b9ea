#include "tools/preload/driver/scope.hpp"

#include <string>

namespace weir::preload {
namespace {

std::string message(const char* call, CUresult code) {
  const char* name = nullptr;
  const Driver* const d = driver();
  if (d != nullptr && d->cuGetErrorName != nullptr) (void)d->cuGetErrorName(code, &name);
  return std::string(call) + " failed: " + (name != nullptr ? name : "error") + " (" +
         std::to_string(static_cast<int>(code)) + ")";
}

}  // namespace

void log_failure(LogLevel level, const char* what, const std::exception& why) noexcept {
  try {
    log(level, std::string(what) + ": " + why.what());
  } catch (const std::exception&) {
    log(level, what);
  }
}

DriverError::DriverError(const char* call, CUresult code)
    : Error(message(call, code)), code_(code) {}

ContextScope::ContextScope(const Driver& driver, CUcontext context, Captures captures) noexcept
    : driver_(driver) {
  if (CurrentContext::known() != context) {
    CUcontext current = nullptr;
    good_ = driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS;
    if (good_ && current != context) {
      good_ = pushed_ = driver.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
    }
  }
  if (good_) current_.emplace(context);
  if (good_ && captures == Captures::kPossible) relaxed_.emplace(driver);
}

ContextScope::~ContextScope() {
  relaxed_.reset();
  CUcontext popped = nullptr;
  if (pushed_) (void)driver_.cuCtxPopCurrent_v2(&popped);
}

}  // namespace weir::preload
