#include "trainer/model/maths.hpp"

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {
namespace {

/// What the operations of one kind of device are computed with.
struct MathsOfKind {
  std::unique_ptr<Maths> (*make)(int ordinal);
  Bytes (*workspace)() noexcept;
};

MathsOfKind maths_of(DeviceId device) {
  switch (device.kind) {  // the compiler asks for every kind
    case DeviceKind::kCpu:
      return {.make = [](int /*ordinal*/) { return make_cpu_maths(); },
              .workspace = []() noexcept { return Bytes{}; }};
    case DeviceKind::kCuda:
      return {.make = make_cuda_maths, .workspace = cuda_workspace};
  }
  throw UsageError("a device of an unknown kind has no maths");
}

}  // namespace

std::unique_ptr<Maths> make_maths(const Device& device) {
  const DeviceId id = parse_device_id(device.name());
  return maths_of(id).make(id.ordinal);
}

Bytes workspace_of(std::string_view device) {
  return maths_of(parse_device_id(device)).workspace();
}

}  // namespace weir
