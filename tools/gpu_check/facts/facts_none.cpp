// For builds without a CUDA toolkit.

#include "tools/gpu_check/facts/facts.hpp"

namespace weir::gpu_check {

std::string ask_facts(const FactsTold& /*told*/) {
  return "this program was built without a CUDA toolkit; build/dev/cuda_note.txt says why";
}

}  // namespace weir::gpu_check
