#pragma once

// Checks whether device memory can be accessed, without work that would break its context.

#include <cuda.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace weir::testing {

/// Whether there is memory behind `address`. `ask` is the driver's cuPointerGetAttributes, which
/// returns no error for any address; a context is current. The memory's type is no evidence: a
/// driver may report reserved addresses without a page as device memory (unverified).
[[nodiscard]] inline bool is_mapped(decltype(&cuPointerGetAttributes) ask, const void* address) {
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MAPPED;
  std::uint64_t mapped = 0;  // as wide as any attribute
  void* answer = &mapped;
  const CUresult code = ask(1, &attribute, &answer, reinterpret_cast<CUdeviceptr>(address));
  if (code != CUDA_SUCCESS) {
    throw std::runtime_error("cuPointerGetAttributes returned " + std::to_string(code));
  }
  return mapped != 0;
}

}  // namespace weir::testing
