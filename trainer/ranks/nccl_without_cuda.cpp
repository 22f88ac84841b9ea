// Replaces nccl_cuda.cpp in a build without the CUDA toolkit.

#include "allocator/base/error.hpp"
#include "trainer/ranks/nccl.hpp"

namespace weir {

NcclId make_nccl_id() {
  throw UsageError("this build has no CUDA: build it again where nvcc is on the PATH");
}

std::unique_ptr<DeviceCollectives> open_nccl(const NcclId& /*id*/, int /*rank*/, int /*size*/,
                                             int /*ordinal*/) {
  throw UsageError("this build has no CUDA: build it again where nvcc is on the PATH");
}

}  // namespace weir
