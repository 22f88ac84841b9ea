// Start, devices and contexts.

#include <cstdio>
#include <cstring>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/capture.hpp"
#include "tests/standin/driver/streams/stream.hpp"

// <cuda.h> defines these as the later versions' names.
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset

namespace {

using namespace weir::standin;

CUresult create_context(CUcontext* context, unsigned int flags, CUdevice ordinal) {
  return api("cuCtxCreate", Needs::kDriver, [&](Call& call) {
    Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<Context>();
    made->device = device;
    made->flags = flags;
    if (!begin_context(call.driver, *made)) return CUDA_ERROR_OUT_OF_MEMORY;
    made->handle = call.driver.contexts.add(made);
    this_thread().contexts.push_back(made->handle);
    *context = made->handle;
    return CUDA_SUCCESS;
  });
}

void reset_primary(Call& call, Device& device) {
  const std::shared_ptr<Context> context = device.primary;
  context->active = false;
  clear_context(call, *context);
  context->references = 0;
  trim_pools(call.driver, device);
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int flags) {
  return api("cuInit", Needs::kNothing, [&](Call& call) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (call.driver.device_count == 0) return CUDA_ERROR_NO_DEVICE;
    call.driver.initialized = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int* version) {
  return api("cuDriverGetVersion", Needs::kNothing, [&](Call& call) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = call.driver.version;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return api("cuDeviceGetCount", Needs::kDriver, [&](Call& call) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = call.driver.device_count;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return api("cuDeviceGet", Needs::kDriver, [&](Call& call) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (find_device(call.driver, ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice ordinal) {
  return api("cuDeviceGetPCIBusId", Needs::kDriver, [&](Call& call) {
    if (find_device(call.driver, ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (text == nullptr || size < 13) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0",
                  static_cast<unsigned>(ordinal));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  return api("cuDeviceGetName", Needs::kDriver, [&](Call& call) {
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (find_device(call.driver, ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(name, static_cast<std::size_t>(length), "Weir stand-in %d", ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  return api("cuDeviceGetUuid", Needs::kDriver, [&](Call& call) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (find_device(call.driver, ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);
    uuid->bytes[0] = static_cast<char>(ordinal + 1);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  return api("cuDeviceGetAttribute", Needs::kDriver, [&](Call& call) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (find_device(call.driver, ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *value = device_attribute(attribute, ordinal);
    if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED &&
        !call.driver.pages_supported) {
      *value = 0;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) {
      *value = call.driver.concurrent_managed ? 1 : 0;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  return api("cuDeviceTotalMem", Needs::kDriver, [&](Call& call) {
    const Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device->total;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  return api("cuDevicePrimaryCtxRetain", Needs::kDriver, [&](Call& call) {
    const Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!device->primary->active && !begin_context(call.driver, *device->primary)) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ++device->primary->references;
    *context = device->primary->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  return api("cuDevicePrimaryCtxRelease", Needs::kDriver, [&](Call& call) {
    Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary->references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary->references == 0) reset_primary(call, *device);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  return api("cuDevicePrimaryCtxReset", Needs::kDriver, [&](Call& call) {
    Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    reset_primary(call, *device);
    return CUDA_SUCCESS;
  });
}

// The form until 11.0, for which runtimes of later versions still ask.
CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return cuDevicePrimaryCtxRelease_v2(ordinal);
}
CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) { return cuDevicePrimaryCtxReset_v2(ordinal); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  return api("cuDevicePrimaryCtxSetFlags", Needs::kDriver, [&](Call& call) {
    const Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    device->primary->flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  return api("cuDevicePrimaryCtxGetState", Needs::kDriver, [&](Call& call) {
    const Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = device->primary->flags;
    *active = device->primary->active ? 1 : 0;
    return CUDA_SUCCESS;
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
    const auto* found = call.driver.contexts.find(handle);
    if (found == nullptr || (*found)->primary) return CUDA_ERROR_INVALID_CONTEXT;
    const std::shared_ptr<Context> context = *found;
    context->active = false;
    clear_context(call, *context);
    call.driver.contexts.remove(handle);
    auto& stack = this_thread().contexts;
    if (!stack.empty() && stack.back() == handle) stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  return api("cuCtxSetCurrent", Needs::kDriver, [&](Call& call) {
    auto& stack = this_thread().contexts;
    if (handle != nullptr && find_context(call.driver, handle) == nullptr) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!stack.empty()) stack.pop_back();
    if (handle != nullptr) stack.push_back(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  return api("cuCtxGetCurrent", Needs::kDriver, [&](Call& /*call*/) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& stack = this_thread().contexts;
    *handle = stack.empty() ? nullptr : stack.back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return api("cuCtxPushCurrent", Needs::kDriver, [&](Call& call) {
    if (find_context(call.driver, handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    this_thread().contexts.push_back(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  return api("cuCtxPopCurrent", Needs::kDriver, [&](Call& /*call*/) {
    auto& stack = this_thread().contexts;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (handle != nullptr) *handle = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return api("cuCtxGetDevice", Needs::kContext, [&](Call& call) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = call.context->device->ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return api("cuCtxGetId", Needs::kDriver, [&](Call& call) {
    const auto& stack = this_thread().contexts;
    if (handle == nullptr) handle = stack.empty() ? nullptr : stack.back();
    if (call.driver.contexts.find(handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const Context* context = find_context(call.driver, handle);
    if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return api("cuCtxGetStreamPriorityRange", Needs::kContext, [&](Call& /*call*/) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize(void) {
  return api("cuCtxSynchronize", Needs::kCanCapture, [&](Call& call) {
    const CUresult refused = refuse_capturing_context(call);
    if (refused != CUDA_SUCCESS) return refused;
    wait_for_context(call, *call.context);
    trim_pools(call.driver, *call.context->device);
    return call.context->broken;
  });
}

}  // extern "C"
