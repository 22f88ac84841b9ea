#include "scheduler/device/stream.hpp"

#include "scheduler/device/serves_device.hpp"

namespace weir {

bool on_device_thread() noexcept { return ServesDevice::here(); }

}  // namespace weir
