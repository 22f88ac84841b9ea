#pragma once

// Keeps what is learned of a device's primary context true until it is acted on. Our retain and
// release look like the program's, and a new context can have the handle of the old one.

#include <array>
#include <optional>

#include "allocator/base/mutex.hpp"
#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

/// Thread-safe. A call that interrupts one of ours on its thread bypasses this: its Entry is
/// nested.
class PrimaryContexts {
 public:
  explicit PrimaryContexts(const Driver& driver) noexcept : driver_(driver) {}

  /// Hold this lock for each call that begins, ends or refers to the primary context of `device`,
  /// and for its consequences. One lock per device, because the driver's release may wait for the
  /// device's work.
  [[nodiscard]] Mutex& of(CUdevice device) noexcept {
    return devices_[static_cast<unsigned>(device) % devices_.size()].mutex;
  }
  /// Returns whether it is retained, or nullopt if the driver does not say.
  [[nodiscard]] std::optional<bool> is_active(CUdevice device) const noexcept {
    unsigned int flags = 0;
    int active = 0;
    const Inside inside;
    const CUresult code = driver_.cuDevicePrimaryCtxGetState(device, &flags, &active);
    return code == CUDA_SUCCESS ? std::optional(active != 0) : std::nullopt;
  }
  /// Returns its handle, or null if nobody retains it. Needs `of(device)`.
  [[nodiscard]] CUcontext find(CUdevice device) const noexcept {
    CUcontext context = nullptr;
    const Inside inside;
    if (!is_active(device).value_or(false) ||
        driver_.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
      return nullptr;
    }
    (void)driver_.cuDevicePrimaryCtxRelease_v2(device);  // others retain it, so it stays
    return context;
  }

 private:
  struct OfDevice {
    Mutex mutex{LockRank::kSources};  // before the locks that forgetting a context takes
  };
  const Driver& driver_;
  std::array<OfDevice, 64> devices_;
};

}  // namespace weir::preload
