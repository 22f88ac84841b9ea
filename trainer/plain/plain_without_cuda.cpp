// Replaces plain_cuda.cpp in a build without the CUDA toolkit.

#include "allocator/base/error.hpp"
#include "trainer/plain/plain.hpp"

namespace weir {

TrainResult train_plain(const TrainSettings& /*settings*/, const TrainHooks& /*hooks*/) {
  throw UsageError("this build has no CUDA: build it again where nvcc is on the PATH");
}

}  // namespace weir
