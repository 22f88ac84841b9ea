#pragma once

// What the device suites need of the kind of device that they run on. A program links one kit: the
// cpu's, or the GPU's, which runs on the stand-in driver and on a real one alike.

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
  /// Enqueues a step that runs on the host when the stream comes to it. It must call nothing of the
  /// device.
  virtual void step(Stream& stream, std::function<void()> step) = 0;
  /// Enqueues that `size` bytes of device memory be set.
  virtual void set_bytes(Stream& stream, void* to, int value, Bytes size) = 0;
};

/// The one of this program.
[[nodiscard]] DeviceKit& kit();

}  // namespace weir::testing
