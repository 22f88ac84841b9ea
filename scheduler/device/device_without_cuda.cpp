// Implements scheduler/device/cuda.hpp in a build without the CUDA toolkit.

#include "allocator/base/error.hpp"
#include "scheduler/device/cuda.hpp"

namespace weir {
namespace {

constexpr const char* kWhy =
    "this build has no CUDA: build again with a CUDA toolkit of at least 12.0 (nvcc on the PATH), "
    "or use the device cpu";

}  // namespace

CudaAnswer find_cuda() { return {.why = kWhy}; }

std::unique_ptr<DeviceBackend> open_cuda_device(int /*ordinal*/, const DeviceOptions& /*options*/) {
  throw UsageError(kWhy);
}

Bytes cuda_memory(int /*ordinal*/) { throw UsageError(kWhy); }

}  // namespace weir
