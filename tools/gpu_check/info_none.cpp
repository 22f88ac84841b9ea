// For builds without a CUDA toolkit.

#include "tools/gpu_check/info.hpp"

namespace weir::gpu_check {

GpuInfo find_gpus() {
  GpuInfo info;
  info.why = "this program was built without a CUDA toolkit; build/dev/cuda_note.txt says why";
  return info;
}

}  // namespace weir::gpu_check
