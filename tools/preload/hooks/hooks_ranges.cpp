// The start and size of an allocation. For pool memory that is what the program asked for, not the
// segment or page that the pool cut it from. The driver answers everything else.

#include <algorithm>
#include <optional>
#include <span>

#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

bool is_of_range(CUpointer_attribute attribute) noexcept {
  return attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
}

/// Returns the answer that replaces the driver's; nothing if the driver's stands.
std::optional<Allocation> ours_around(CUdeviceptr address) noexcept {
  Process* const process = Process::get();
  return process != nullptr ? process->ownership().allocation_around(address) : std::nullopt;
}

/// Writes the value of `attribute`, an attribute of the range, for `allocation`.
void tell(CUpointer_attribute attribute, const Allocation& allocation, void* value) noexcept {
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
    *static_cast<CUdeviceptr*>(value) = allocation.begin;
  } else {
    *static_cast<std::size_t*>(value) = allocation.bytes;
  }
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;

extern "C" {

// Each function asks the driver first, so that it refuses the same calls as without us.

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
  const Call call;
  Allocation told;
  const CUresult code = pass(&Driver::cuMemGetAddressRange_v2, base != nullptr ? &told.begin : base,
                             bytes != nullptr ? &told.bytes : bytes, pointer);
  if (code != CUDA_SUCCESS) return code;
  if (const auto ours = ours_around(pointer)) {
    if (ours->bytes == 0) return CUDA_ERROR_NOT_FOUND;
    told = *ours;
  }
  if (base != nullptr) *base = told.begin;
  if (bytes != nullptr) *bytes = told.bytes;
  return code;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  if (!is_of_range(attribute) || value == nullptr) {
    return jump(&Driver::cuPointerGetAttribute, value, attribute, pointer);
  }
  const Call call;
  Allocation told;
  void* const place = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
                          ? static_cast<void*>(&told.begin)
                          : &told.bytes;
  const CUresult code = pass(&Driver::cuPointerGetAttribute, place, attribute, pointer);
  if (code != CUDA_SUCCESS) return code;
  if (const auto ours = ours_around(pointer)) {
    if (ours->bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    told = *ours;
  }
  tell(attribute, told, value);
  return code;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** values,
                                CUdeviceptr pointer) {
  const std::span wanted(attributes, attributes != nullptr ? count : 0);
  // Frameworks ask often, and for other attributes: take no lock for them.
  if (std::ranges::none_of(wanted, is_of_range)) {
    return jump(&Driver::cuPointerGetAttributes, count, attributes, values, pointer);
  }
  const Call call;
  const CUresult code = pass(&Driver::cuPointerGetAttributes, count, attributes, values, pointer);
  const auto ours = code == CUDA_SUCCESS ? ours_around(pointer) : std::nullopt;
  if (!ours) return code;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // Unallocated memory reads as nothing, as in the driver.
    if (is_of_range(wanted[i])) tell(wanted[i], *ours, values[i]);
  }
  return code;
}

}  // extern "C"
