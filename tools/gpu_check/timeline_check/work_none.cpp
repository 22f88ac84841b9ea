// For builds without a CUDA toolkit.

#include "allocator/base/error.hpp"
#include "tools/gpu_check/timeline_check/work.hpp"

namespace weir::gpu_check {

std::string why_no_gpu() { return "this program was built without a CUDA toolkit"; }

std::vector<Stretch> do_work(WorkSize /*size*/) { throw UsageError("no GPU: " + why_no_gpu()); }

}  // namespace weir::gpu_check
