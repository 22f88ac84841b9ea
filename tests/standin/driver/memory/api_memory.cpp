// Device and host memory, and the attributes of a pointer.

#include "tests/standin/driver/memory/graph_memory.hpp"
#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/memory/ranges.hpp"
#include "tests/standin/driver/streams/stream.hpp"

#undef cuMemAdvise
#if CUDA_VERSION >= 13000
extern "C" CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice,
                                CUdevice device);
#endif

namespace {

using namespace weir::standin;

CUresult allocate_host(const char* name, void** pointer, std::size_t bytes, unsigned int flags) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    void* memory = take_memory(BlockKind::kHost, bytes);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    add_block(call.driver, reinterpret_cast<std::uintptr_t>(memory),
              {.kind = BlockKind::kHost, .bytes = bytes, .context = call.context, .flags = flags});
    *pointer = memory;
    return CUDA_SUCCESS;
  });
}

CUresult attribute_of(Call& call, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const Range range = find_range(call.driver, pointer);
  if (range.kind == RangeKind::kPageable) return CUDA_ERROR_INVALID_VALUE;
  const bool host = range.kind == RangeKind::kPinned;
  const Device* device = range.device;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = device->primary->handle;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned int*>(data) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = pointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (range.kind == RangeKind::kDevice) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(data) = pointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = device->ordinal;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned char*>(data) = range.kind == RangeKind::kManaged ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = range.start;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = range.bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<int*>(data) = range.mapped ? 1 : 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// Sets where managed memory is, or who accesses it there (`on_host`).
CUresult advise(const char* name, CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice,
                bool host) {
  return api(name, Needs::kContext, [&](Call& call) {
    std::uintptr_t base = 0;
    Block* block = find_block(call.driver, pointer, &base);
    if (block == nullptr || block->kind != BlockKind::kManaged ||
        pointer - base + bytes > block->bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!call.driver.concurrent_managed) return CUDA_ERROR_INVALID_DEVICE;
    if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) block->on_host = host;
    if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY && !host) block->accessed = true;
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise("cuMemAdvise", pointer, bytes, advice, device == CU_DEVICE_CPU);
}
#if CUDA_VERSION >= 12020
CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, CUmem_advise advice,
                        CUmemLocation location) {
  return advise("cuMemAdvise", pointer, bytes, advice, location.type == CU_MEM_LOCATION_TYPE_HOST);
}
#endif

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return api("cuMemGetInfo", Needs::kContext, [&](Call& call) {
    const Device& device = *call.context->device;
    if (free != nullptr) *free = device.total > device.used ? device.total - device.used : 0;
    if (total != nullptr) *total = device.total;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return api("cuMemAlloc", Needs::kCanCapture, [&](Call& call) {
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return allocate_block(call, BlockKind::kDevice, bytes, pointer);
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  return api("cuMemAllocPitch", Needs::kCanCapture, [&](Call& call) {
    if (pointer == nullptr || pitch == nullptr || width == 0 || height == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
    if (width > SIZE_MAX - kAlignment || height > SIZE_MAX / round_up(width, kAlignment)) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const std::size_t row = round_up(width, kAlignment);
    const CUresult result = allocate_block(call, BlockKind::kDevice, row * height, pointer);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags) {
  return api("cuMemAllocManaged", Needs::kCanCapture, [&](Call& call) {
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate_block(call, BlockKind::kManaged, bytes, pointer);
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return api("cuMemFree", Needs::kCanCapture, [&](Call& call) {
    if (pointer == 0) return CUDA_SUCCESS;
    const auto found = call.driver.blocks.find(pointer);
    if (found == call.driver.blocks.end() || found->second.freeing) return CUDA_ERROR_INVALID_VALUE;
    const BlockKind kind = found->second.kind;
    if (!is_of_device(kind)) return CUDA_ERROR_INVALID_VALUE;
    if (kind == BlockKind::kGraph) return free_graph_memory(found->second);
    found->second.freeing = true;
    // Such a free of pooled memory promises that the device is done with it.
    if (kind != BlockKind::kPooled) wait_for_device(call, *found->second.context->device);
    release_block(call.driver, pointer);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  return api("cuMemGetAddressRange", Needs::kContext, [&](Call& call) {
    const Range range = find_range(call.driver, pointer);
    if (range.kind != RangeKind::kDevice && range.kind != RangeKind::kManaged) {
      return CUDA_ERROR_NOT_FOUND;
    }
    if (base != nullptr) *base = range.start;
    if (bytes != nullptr) *bytes = range.bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return allocate_host("cuMemHostAlloc", pointer, bytes, flags);
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return allocate_host("cuMemAllocHost", pointer, bytes, 0);
}

CUresult cuMemFreeHost(void* pointer) {
  return api("cuMemFreeHost", Needs::kCanCapture, [&](Call& call) {
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    const auto found = call.driver.blocks.find(base);
    if (found == call.driver.blocks.end() || found->second.kind != BlockKind::kHost ||
        found->second.freeing) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    found->second.freeing = true;
    wait_for_device(call, *found->second.context->device);
    release_block(call.driver, base);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  return api("cuMemHostRegister", Needs::kCanCapture, [&](Call& call) {
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    if (find_block(call.driver, base) != nullptr ||
        find_block(call.driver, base + bytes - 1) != nullptr) {
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    add_block(
        call.driver, base,
        {.kind = BlockKind::kRegistered, .bytes = bytes, .context = call.context, .flags = flags});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostUnregister(void* pointer) {
  return api("cuMemHostUnregister", Needs::kCanCapture, [&](Call& call) {
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    const auto found = call.driver.blocks.find(base);
    if (found == call.driver.blocks.end() || found->second.kind != BlockKind::kRegistered) {
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    wait_for_device(call, *found->second.context->device);
    release_block(call.driver, base);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned int flags) {
  return api("cuMemHostGetDevicePointer", Needs::kContext, [&](Call& call) {
    const auto address = reinterpret_cast<std::uintptr_t>(host);
    if (device == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (find_range(call.driver, address).kind != RangeKind::kPinned) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *device = address;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* host) {
  return api("cuMemHostGetFlags", Needs::kContext, [&](Call& call) {
    const Block* block = find_block(call.driver, reinterpret_cast<std::uintptr_t>(host));
    if (flags == nullptr || block == nullptr || block->kind != BlockKind::kHost) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = block->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return api("cuPointerGetAttribute", Needs::kContext, [&](Call& call) {
    return data == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : attribute_of(call, data, attribute, pointer);
  });
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  return api("cuPointerGetAttributes", Needs::kContext, [&](Call& call) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; ++i) {
      // An attribute that a pointer does not have reads as null, without an error.
      if (attribute_of(call, data[i], attributes[i], pointer) == CUDA_SUCCESS) continue;
      switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
          *static_cast<unsigned char*>(data[i]) = 0;
          break;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
          *static_cast<unsigned int*>(data[i]) = 0;
          break;
        case CU_POINTER_ATTRIBUTE_MAPPED:
          *static_cast<int*>(data[i]) = 0;
          break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
          *static_cast<int*>(data[i]) = -2;
          break;
        default:
          *static_cast<void**>(data[i]) = nullptr;
      }
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
