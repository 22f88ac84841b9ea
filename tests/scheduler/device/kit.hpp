#pragma once

// What the device suites need of a kind of device. A program links one kit: the cpu's, or the
// GPU's, which runs on the stand-in driver and on a real one.

#include <functional>
#include <memory>

#include "scheduler/device/device.hpp"

namespace weir::testing {

class DeviceKit {
 public:
  DeviceKit() = default;
  DeviceKit(const DeviceKit&) = delete;
  DeviceKit& operator=(const DeviceKit&) = delete;
  virtual ~DeviceKit() = default;

  [[nodiscard]] virtual std::unique_ptr<DeviceBackend> open(Bytes memory) = 0;
  /// Enqueues a host step in the stream's order. It must not call the device.
  virtual void step(Stream& stream, std::function<void()> step) = 0;
  /// Enqueues a set of `size` bytes of device memory.
  virtual void set_bytes(Stream& stream, void* to, int value, Bytes size) = 0;
};

/// This program's kit.
[[nodiscard]] DeviceKit& kit();

}  // namespace weir::testing
