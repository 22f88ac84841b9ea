#pragma once

// What is learned of a device's primary context stays true until it is acted on. Retains of threads
// that ask and release again look like the program's, and a context that is made anew can have the
// handle of the one that ended.

#include <array>
#include <optional>

#include "allocator/base/mutex.hpp"
#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

/// Thread-safe. A call that interrupts one of the library's on its thread goes past it: its Entry
/// is nested.
class PrimaryContexts {
 public:
  explicit PrimaryContexts(const Driver& driver) noexcept : driver_(driver) {}

  /// To be held over each call that begins the primary context of `device`, ends it or refers to
  /// it, and over what follows from that. The driver's release may wait for the device's work, so
  /// devices do not wait for each other.
  [[nodiscard]] Mutex& of(CUdevice device) noexcept {
    return devices_[static_cast<unsigned>(device) % devices_.size()].mutex;
  }
  /// Whether somebody holds it; nothing where the driver does not say.
  [[nodiscard]] std::optional<bool> is_active(CUdevice device) const noexcept {
    unsigned int flags = 0;
    int active = 0;
    const Inside inside;
    const CUresult code = driver_.cuDevicePrimaryCtxGetState(device, &flags, &active);
    return code == CUDA_SUCCESS ? std::optional(active != 0) : std::nullopt;
  }
  /// Its handle, null where nobody holds it. Under `of(device)`.
  [[nodiscard]] CUcontext find(CUdevice device) const noexcept {
    CUcontext context = nullptr;
    const Inside inside;
    if (!is_active(device).value_or(false) ||
        driver_.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
      return nullptr;
    }
    (void)driver_.cuDevicePrimaryCtxRelease_v2(device);  // others hold it: it stays
    return context;
  }

 private:
  struct OfDevice {
    Mutex mutex{LockRank::kSources};  // before what forgetting a context takes
  };
  const Driver& driver_;
  std::array<OfDevice, 64> devices_;
};

}  // namespace weir::preload
