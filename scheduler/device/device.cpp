#include "scheduler/device/device.hpp"

#include <string>

#include "allocator/base/error.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {
namespace {

void require_at_most(Bytes memory, Bytes most, const std::string& whose) {
  if (memory <= most) return;
  throw UsageError("device memory " + format_bytes(memory) + " is not allowed: at most what " +
                   whose + " has, " + format_bytes(most));
}

}  // namespace

Device open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") return open_device(default_device().name, options);
  const DeviceId id = parse_device_id(name);
  const KindOfDevice& kind = kind_of(id);
  require_at_most(options.memory, kind.most_memory(id.ordinal), kind.owner(id.ordinal));
  return Device(kind.open(id.ordinal, options));
}

}  // namespace weir
