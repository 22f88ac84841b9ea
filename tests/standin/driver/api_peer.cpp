// Access between devices. Permissions are stored and returned; a kernel's access is not checked.

#include <span>

#include "tests/standin/driver/driver.hpp"

namespace {

using namespace weir::standin;

bool can_access(const Device& device, const Device& peer) { return &device != &peer; }

/// Whether `access` is possible for memory of `owner`.
CUresult check_access(Driver& driver, const Device& owner, const CUmemAccessDesc& access) {
  if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = find_device(driver, access.location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const bool known = access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                     access.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                     access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  // A device can always access its own memory.
  const bool revoked = device == &owner && access.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return known && !revoked ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer_ordinal) {
  return api("cuDeviceCanAccessPeer", Needs::kDriver, [&](Call& call) {
    const Device* device = find_device(call.driver, ordinal);
    const Device* peer = find_device(call.driver, peer_ordinal);
    if (device == nullptr || peer == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *can = can_access(*device, *peer) ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  return api("cuCtxEnablePeerAccess", Needs::kContext, [&](Call& call) {
    const Context* peer = find_context(call.driver, handle);
    if (peer == nullptr || peer == call.context) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!can_access(*call.context->device, *peer->device)) {
      return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    return call.context->peers.insert(peer).second ? CUDA_SUCCESS
                                                   : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  return api("cuCtxDisablePeerAccess", Needs::kContext, [&](Call& call) {
    const Context* peer = find_context(call.driver, handle);
    if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return call.context->peers.erase(peer) == 1 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* accesses, size_t count) {
  return api("cuMemPoolSetAccess", Needs::kDriver, [&](Call& call) {
    const auto* found = call.driver.pools.find(handle);
    if (found == nullptr || (accesses == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    Pool& pool = **found;
    const std::span wanted(accesses, count);
    for (const CUmemAccessDesc& access : wanted) {
      const CUresult checked = check_access(call.driver, *pool.device, access);
      if (checked != CUDA_SUCCESS) return checked;
    }
    for (const CUmemAccessDesc& access : wanted) pool.access[access.location.id] = access.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
  return api("cuMemPoolGetAccess", Needs::kDriver, [&](Call& call) {
    const auto* found = call.driver.pools.find(handle);
    if (flags == nullptr || found == nullptr || location == nullptr ||
        location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const Device* device = find_device(call.driver, location->id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const Pool& pool = **found;
    const auto given = pool.access.find(device->ordinal);
    *flags = given == pool.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : given->second;
    if (device == pool.device) *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
