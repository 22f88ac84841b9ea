#include "trainer/model/maths.hpp"

#include "scheduler/device/cuda.hpp"

namespace weir {

std::unique_ptr<Maths> make_maths(const Device& device) {
  const int ordinal = cuda_ordinal(device.name());
  return ordinal < 0 ? make_cpu_maths() : make_cuda_maths(ordinal);
}

Bytes workspace_of(std::string_view device) noexcept {
  return cuda_ordinal(device) < 0 ? Bytes{} : cuda_workspace();
}

}  // namespace weir
