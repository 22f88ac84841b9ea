#pragma once

#include <utility>

namespace weir {

namespace detail {
inline constinit thread_local bool serves_device = false;
}

/// Marks the calling thread as serving a device during its lifetime; see on_device_thread.
class ServesDevice {
 public:
  ServesDevice() noexcept : before_(std::exchange(detail::serves_device, true)) {}
  ~ServesDevice() { detail::serves_device = before_; }
  ServesDevice(const ServesDevice&) = delete;
  ServesDevice& operator=(const ServesDevice&) = delete;

  /// Whether the calling thread is marked.
  [[nodiscard]] static bool here() noexcept { return detail::serves_device; }

 private:
  const bool before_;
};

}  // namespace weir
