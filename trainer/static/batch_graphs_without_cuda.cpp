// Replaces batch_graphs_cuda.cpp in a build without the CUDA toolkit.

#include "allocator/base/error.hpp"
#include "trainer/static/batch_graphs.hpp"

namespace weir {

std::shared_ptr<BatchGraphs> make_cuda_graphs(int /*ordinal*/) {
  throw UsageError("this build has no CUDA: build it again where nvcc is on the PATH");
}

}  // namespace weir
