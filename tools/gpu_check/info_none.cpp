// For builds without a CUDA toolkit.

#include "tools/gpu_check/info.hpp"

namespace weir::gpu_check {

Machine find_gpus() {
  return {{{"gpus", nlohmann::json::array()}},
          "this program was built without a CUDA toolkit; build/dev/cuda_note.txt says why"};
}

}  // namespace weir::gpu_check
