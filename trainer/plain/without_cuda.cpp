// Replaces maths_cuda.cpp, batch_graphs_cuda.cpp and plain_cuda.cpp in a build without the CUDA
// toolkit.

#include "allocator/base/error.hpp"
#include "trainer/model/maths.hpp"
#include "trainer/plain/plain.hpp"
#include "trainer/static/batch_graphs.hpp"

namespace weir {
namespace {

[[noreturn]] void refuse_cuda() {
  throw UsageError("this build has no CUDA: build it again where nvcc is on the PATH");
}

}  // namespace

std::unique_ptr<Maths> make_cuda_maths(int /*ordinal*/) { refuse_cuda(); }

Bytes cuda_workspace() noexcept { return {}; }

std::shared_ptr<BatchGraphs> make_cuda_graphs(int /*ordinal*/) { refuse_cuda(); }

TrainResult train_plain(const TrainSettings& /*settings*/, const TrainHooks& /*hooks*/) {
  refuse_cuda();
}

}  // namespace weir
