#include "scheduler/device/cuda.hpp"

#include <utility>

namespace weir {

DefaultDevice default_device() {
  CudaAnswer answer = find_cuda();
  if (answer.devices > 0) return {.name = "cuda", .why = std::move(answer.name)};
  return {.name = "cpu", .why = std::move(answer.why)};
}

}  // namespace weir
