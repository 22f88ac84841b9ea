// Opens devices by name.

#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {
namespace {

void require_at_most(Bytes memory, Bytes most, const std::string& whose) {
  if (memory <= most) return;
  throw UsageError("device memory " + format_bytes(memory) + " is not allowed: at most what " +
                   whose + " has, " + format_bytes(most));
}

}  // namespace

DefaultDevice default_device() {
  CudaAnswer answer = find_cuda();
  if (answer.devices > 0) return {.name = "cuda", .why = std::move(answer.name)};
  return {.name = "cpu", .why = std::move(answer.why)};
}

Device open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") return open_device(default_device().name, options);
  const DeviceId id = parse_device_id(name);
  const KindOfDevice& kind = kind_of(id);
  require_at_most(options.memory, kind.most_memory(id.ordinal), kind.owner(id.ordinal));
  return Device(kind.open(id.ordinal, options));
}

}  // namespace weir
