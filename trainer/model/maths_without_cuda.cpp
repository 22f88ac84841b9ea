// Replaces maths_cuda.cpp in a build without the CUDA toolkit.

#include "allocator/base/error.hpp"
#include "trainer/model/maths.hpp"

namespace weir {

std::unique_ptr<Maths> make_cuda_maths(int /*ordinal*/) {
  throw UsageError("this build has no CUDA: build it again where nvcc is on the PATH");
}

Bytes cuda_workspace() noexcept { return {}; }

}  // namespace weir
