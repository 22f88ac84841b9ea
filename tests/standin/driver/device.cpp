// Start, devices, contexts, and the names of errors. Access between devices is stored and returned;
// a kernel's access is not checked.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <span>

#include "tests/standin/codes.hpp"
#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

// <cuda.h> defines these as the later versions' names.
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset

namespace weir::standin {
namespace {

constexpr struct {
  CUdevice_attribute attribute;
  int value;
} kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1'000'000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1'000'000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
};

/// Unknown ones are 0.
int attribute_of(const Driver& driver, CUdevice_attribute attribute, int ordinal) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return ordinal;  // as cuDeviceGetPCIBusId has it
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return driver.pages_supported ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      return driver.concurrent_managed ? 1 : 0;
    default: {
      const auto* const found =
          std::ranges::find(kAttributes, attribute, [](const auto& row) { return row.attribute; });
      return found == std::end(kAttributes) ? 0 : found->value;
    }
  }
}

/// A function on one device.
template <typename Body>
CUresult on_device(const char* name, CUdevice ordinal, Body body) {
  return api(name, Needs::kDriver,
             [&](Call& call) { body(call, get_device(call.driver, ordinal)); });
}

CUresult create_context(CUcontext* context, unsigned int flags, CUdevice ordinal) {
  return on_device("cuCtxCreate", ordinal, [&](Call& call, Device& device) {
    CUcontext& out = given(context);
    auto made = std::make_shared<Context>();
    made->device = &device;
    made->flags = flags;
    begin_context(call.driver, *made);
    made->handle = out = call.driver.contexts.add(made);
    this_thread().contexts.push_back(out);
  });
}

void reset_primary(Call& call, Device& device) {
  const std::shared_ptr<Context> context = device.primary;
  context->active = false;
  clear_context(call, *context);
  context->references = 0;
  trim_pools(call.driver, device);
}

bool can_access(const Device& device, const Device& peer) { return &device != &peer; }

/// Whether `access` is possible for memory of `owner`.
void check_access(Driver& driver, const Device& owner, const CUmemAccessDesc& access) {
  require(access.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  const Device& device = get_device(driver, access.location.id);
  require(access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
          access.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
          access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  // A device can always access its own memory.
  require(&device != &owner || access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

/// A context of this handle, or the current one.
CUcontext context_or_current(CUcontext handle) {
  const auto& stack = this_thread().contexts;
  return handle != nullptr || stack.empty() ? handle : stack.back();
}

CUresult tell_code(const char* name, CUresult error, const char** out, const char* Code::*text) {
  return api(name, Needs::kNothing, [&](Call& /*call*/) {
    const Code* const code = find_code(error);
    given(out) = code == nullptr ? nullptr : code->*text;
    require(*out != nullptr);
  });
}

}  // namespace
}  // namespace weir::standin

extern "C" {

using namespace weir::standin;

CUresult cuInit(unsigned int flags) {
  return api("cuInit", Needs::kNothing, [&](Call& call) {
    require(flags == 0);
    require(call.driver.device_count > 0, CUDA_ERROR_NO_DEVICE);
    call.driver.initialized = true;
  });
}

CUresult cuDriverGetVersion(int* version) {
  return api("cuDriverGetVersion", Needs::kNothing,
             [&](Call& call) { given(version) = call.driver.version; });
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  return tell_code("cuGetErrorName", error, name, &Code::driver_name);
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return tell_code("cuGetErrorString", error, text, &Code::text);
}

CUresult cuDeviceGetCount(int* count) {
  return api("cuDeviceGetCount", Needs::kDriver,
             [&](Call& call) { given(count) = call.driver.device_count; });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return on_device("cuDeviceGet", ordinal, [&](Call&, Device&) { given(device) = ordinal; });
}

CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice ordinal) {
  return on_device("cuDeviceGetPCIBusId", ordinal, [&](Call&, Device&) {
    require(text != nullptr && size >= 13);
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0",
                  static_cast<unsigned>(ordinal));
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  return on_device("cuDeviceGetName", ordinal, [&](Call&, Device&) {
    require(name != nullptr && length > 0);
    std::snprintf(name, static_cast<std::size_t>(length), "Weir stand-in %d", ordinal);
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  return on_device("cuDeviceGetUuid", ordinal, [&](Call&, Device&) {
    given(uuid) = {};
    uuid->bytes[0] = static_cast<char>(ordinal + 1);
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  return on_device("cuDeviceGetAttribute", ordinal, [&](Call& call, Device&) {
    given(value) = attribute_of(call.driver, attribute, ordinal);
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  return on_device("cuDeviceTotalMem", ordinal,
                   [&](Call&, const Device& device) { given(bytes) = device.total; });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  return on_device("cuDevicePrimaryCtxRetain", ordinal, [&](Call& call, const Device& device) {
    CUcontext& out = given(context);
    if (!device.primary->active) begin_context(call.driver, *device.primary);
    ++device.primary->references;
    out = device.primary->handle;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  return on_device("cuDevicePrimaryCtxRelease", ordinal, [](Call& call, Device& device) {
    require(device.primary->references > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--device.primary->references == 0) reset_primary(call, device);
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  return on_device("cuDevicePrimaryCtxReset", ordinal, &reset_primary);
}

// The form until 11.0, for which runtimes of later versions still ask.
CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return cuDevicePrimaryCtxRelease_v2(ordinal);
}
CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) { return cuDevicePrimaryCtxReset_v2(ordinal); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  return on_device("cuDevicePrimaryCtxSetFlags", ordinal,
                   [&](Call&, const Device& device) { device.primary->flags = flags; });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  return on_device("cuDevicePrimaryCtxGetState", ordinal, [&](Call&, const Device& device) {
    require(flags != nullptr && active != nullptr);
    *flags = device.primary->flags;
    *active = device.primary->active ? 1 : 0;
  });
}

// No header of the toolkit has it any more, but the driver does.
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice ordinal) {
  return create_context(context, flags, ordinal);
}

#if CUDA_VERSION >= 13000
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                        CUdevice ordinal) {
  return parameters == nullptr ? create_context(context, flags, ordinal) : CUDA_ERROR_NOT_SUPPORTED;
}
#endif

CUresult cuCtxDestroy_v2(CUcontext handle) {
  return api("cuCtxDestroy", Needs::kDriver, [&](Call& call) {
    const std::shared_ptr<Context> context =
        call.driver.contexts.get(handle, CUDA_ERROR_INVALID_CONTEXT);
    require(!context->primary, CUDA_ERROR_INVALID_CONTEXT);
    context->active = false;
    clear_context(call, *context);
    call.driver.contexts.remove(handle);
    auto& stack = this_thread().contexts;
    if (!stack.empty() && stack.back() == handle) stack.pop_back();
  });
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  return api("cuCtxSetCurrent", Needs::kDriver, [&](Call& call) {
    auto& stack = this_thread().contexts;
    require(handle == nullptr || find_context(call.driver, handle) != nullptr,
            CUDA_ERROR_INVALID_CONTEXT);
    if (!stack.empty()) stack.pop_back();
    if (handle != nullptr) stack.push_back(handle);
  });
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  return api("cuCtxGetCurrent", Needs::kDriver,
             [&](Call& /*call*/) { given(handle) = context_or_current(nullptr); });
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return api("cuCtxPushCurrent", Needs::kDriver, [&](Call& call) {
    require(find_context(call.driver, handle) != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    this_thread().contexts.push_back(handle);
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  return api("cuCtxPopCurrent", Needs::kDriver, [&](Call& /*call*/) {
    auto& stack = this_thread().contexts;
    require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (handle != nullptr) *handle = stack.back();
    stack.pop_back();
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return api("cuCtxGetDevice", Needs::kContext,
             [&](Call& call) { given(device) = call.context->device->ordinal; });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return api("cuCtxGetId", Needs::kDriver, [&](Call& call) {
    const Context& context =
        *call.driver.contexts.get(context_or_current(handle), CUDA_ERROR_INVALID_CONTEXT);
    require(context.active, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    given(id) = context.id;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return api("cuCtxGetStreamPriorityRange", Needs::kContext, [&](Call& /*call*/) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
  });
}

CUresult cuCtxSynchronize(void) {
  return api("cuCtxSynchronize", Needs::kCanCapture, [&](Call& call) {
    refuse_capturing_context(call);
    wait_for_context(call, *call.context);
    trim_pools(call.driver, *call.context->device);
    return call.context->broken;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
  return on_device("cuDeviceCanAccessPeer", ordinal, [&](Call& call, const Device& device) {
    const bool access = can_access(device, get_device(call.driver, peer));
    given(can) = access ? 1 : 0;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  return api("cuCtxEnablePeerAccess", Needs::kContext, [&](Call& call) {
    const Context* peer = find_context(call.driver, handle);
    require(peer != nullptr && peer != call.context, CUDA_ERROR_INVALID_CONTEXT);
    require(flags == 0);
    require(can_access(*call.context->device, *peer->device), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    require(call.context->peers.insert(peer).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  return api("cuCtxDisablePeerAccess", Needs::kContext, [&](Call& call) {
    const Context* peer = find_context(call.driver, handle);
    require(peer != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    require(call.context->peers.erase(peer) == 1, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* accesses, size_t count) {
  return api("cuMemPoolSetAccess", Needs::kDriver, [&](Call& call) {
    Pool& pool = *call.driver.pools.get(handle);
    require(accesses != nullptr || count == 0);
    const std::span wanted(accesses, count);
    for (const auto& access : wanted) check_access(call.driver, *pool.device, access);
    for (const auto& access : wanted) pool.access[access.location.id] = access.flags;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
  return api("cuMemPoolGetAccess", Needs::kDriver, [&](Call& call) {
    const Pool& pool = *call.driver.pools.get(handle);
    require(flags != nullptr && location != nullptr &&
            location->type == CU_MEM_LOCATION_TYPE_DEVICE);
    const Device& device = get_device(call.driver, location->id);
    const auto found = pool.access.find(device.ordinal);
    *flags = found == pool.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
    if (&device == pool.device) *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  });
}

}  // extern "C"
