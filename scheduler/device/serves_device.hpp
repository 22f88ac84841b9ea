#pragma once

namespace weir {

/// While it lives, the calling thread serves a device: see on_device_thread in stream.hpp.
class ServesDevice {
 public:
  ServesDevice() noexcept;
  ~ServesDevice();
  ServesDevice(const ServesDevice&) = delete;
  ServesDevice& operator=(const ServesDevice&) = delete;

 private:
  const bool before_;
};

}  // namespace weir
