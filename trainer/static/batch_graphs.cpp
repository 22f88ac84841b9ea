#include "trainer/static/batch_graphs.hpp"

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {

std::shared_ptr<BatchGraphs> make_batch_graphs(const Device& device) {
  const DeviceId id = parse_device_id(device.name());
  switch (id.kind) {  // the compiler asks for every kind
    case DeviceKind::kCpu:
      return nullptr;
    case DeviceKind::kCuda:
      return make_cuda_graphs(id.ordinal);
  }
  throw UsageError("a device of an unknown kind has no graphs");
}

}  // namespace weir
