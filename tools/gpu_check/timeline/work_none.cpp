// Of a build without a CUDA toolkit.

#include "allocator/error.hpp"
#include "tools/gpu_check/timeline/work.hpp"

namespace weir::gpu_check {

std::vector<Stretch> do_work(WorkSize /*size*/) {
  throw UsageError("no GPU: this program was built without a CUDA toolkit");
}

}  // namespace weir::gpu_check
