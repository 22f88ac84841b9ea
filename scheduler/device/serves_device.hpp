#pragma once

/// @file
/// Which threads serve a device.

namespace weir {

/// Marks the calling thread as serving a device during its lifetime; see on_device_thread.
class ServesDevice {
 public:
  ServesDevice() noexcept;
  ~ServesDevice();
  ServesDevice(const ServesDevice&) = delete;
  ServesDevice& operator=(const ServesDevice&) = delete;

 private:
  const bool before_;
};

/// Whether the calling thread serves a device. Such a thread must not submit or wait: it could wait
/// for work queued behind itself.
[[nodiscard]] bool on_device_thread() noexcept;

}  // namespace weir
