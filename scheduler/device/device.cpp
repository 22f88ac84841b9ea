#include "scheduler/device/device.hpp"

#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {

Device open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") return open_device(default_device().name, options);
  const DeviceId id = parse_device_id(name);
  require_memory(id, options.memory);
  return Device(kind_of(id).open(id.ordinal, options));
}

}  // namespace weir
