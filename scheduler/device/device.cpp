#include "scheduler/device/device.hpp"

#include <utility>

#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device_kind.hpp"
#include "scheduler/device/serves_device.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

Device open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") return open_device(default_device().name, options);
  const DeviceId id = parse_device_id(name);
  require_memory(id, options.memory);
  return Device(kind_of(id).open(id.ordinal, options));
}

bool on_device_thread() noexcept { return ServesDevice::here(); }

DefaultDevice default_device() {
  CudaAnswer answer = find_cuda();
  if (answer.devices > 0) return {.name = "cuda", .why = std::move(answer.name)};
  return {.name = "cpu", .why = std::move(answer.why)};
}

}  // namespace weir
