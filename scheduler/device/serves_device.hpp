#pragma once

namespace weir {

/// Marks the calling thread as serving a device during its lifetime; see on_device_thread.
class ServesDevice {
 public:
  ServesDevice() noexcept;
  ~ServesDevice();
  ServesDevice(const ServesDevice&) = delete;
  ServesDevice& operator=(const ServesDevice&) = delete;

  /// Whether the calling thread is marked.
  [[nodiscard]] static bool here() noexcept;

 private:
  const bool before_;
};

}  // namespace weir
