// Device and host memory, and the attributes of a pointer.

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

#undef cuMemAdvise

namespace {

using namespace weir::standin;

CUresult allocate_host(const char* name, void** pointer, std::size_t bytes, unsigned int flags) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    require(pointer != nullptr && bytes != 0);
    void* memory = take_memory(BlockKind::kHost, bytes);
    require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    add_block(call.driver, reinterpret_cast<std::uintptr_t>(memory),
              {.kind = BlockKind::kHost, .bytes = bytes, .context = call.context, .flags = flags});
    *pointer = memory;
  });
}

/// The block that begins at `base` and nobody frees yet, of a kind that `is_right`.
template <typename IsRight>
Block& block_at(Call& call, std::uintptr_t base, IsRight is_right,
                CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
  const auto found = call.driver.blocks.find(base);
  require(
      found != call.driver.blocks.end() && !found->second.freeing && is_right(found->second.kind),
      otherwise);
  return found->second;
}

/// Frees a block of host memory.
CUresult free_host(const char* name, void* pointer, BlockKind kind, CUresult otherwise) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    Block& block = block_at(
        call, base, [=](BlockKind found) { return found == kind; }, otherwise);
    block.freeing = true;
    wait_for_device(call, *block.context->device);
    release_block(call.driver, base);
  });
}

template <typename T>
CUresult tell(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult attribute_of(Call& call, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const Range range = find_range(call.driver, pointer);
  if (range.kind == RangeKind::kPageable) return CUDA_ERROR_INVALID_VALUE;
  const bool host = range.kind == RangeKind::kPinned;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return tell(data, range.device->primary->handle);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return tell<unsigned int>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return tell(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return range.kind == RangeKind::kDevice ? CUDA_ERROR_INVALID_VALUE : tell(data, pointer);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return tell(data, range.device->ordinal);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return tell<unsigned char>(data, range.kind == RangeKind::kManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return tell<CUdeviceptr>(data, range.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return tell(data, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return tell<int>(data, range.mapped ? 1 : 0);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// An attribute that a pointer does not have reads as null.
void tell_none(void* data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      tell<unsigned char>(data, 0);
      return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      tell(data, 0);
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      tell(data, -2);
      return;
    default:
      tell<void*>(data, nullptr);
  }
}

/// Sets where managed memory is, or who accesses it there (`on_host`).
CUresult advise(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, bool host) {
  return api("cuMemAdvise", Needs::kContext, [&](Call& call) {
    std::uintptr_t base = 0;
    Block* block = find_block(call.driver, pointer, &base);
    require(block != nullptr && block->kind == BlockKind::kManaged &&
            pointer - base + bytes <= block->bytes);
    require(call.driver.concurrent_managed, CUDA_ERROR_INVALID_DEVICE);
    if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) block->on_host = host;
    if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY && !host) block->accessed = true;
  });
}

}  // namespace

extern "C" {

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise(pointer, bytes, advice, device == CU_DEVICE_CPU);
}
#if CUDA_VERSION >= 12020
CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, CUmem_advise advice,
                        CUmemLocation location) {
  return advise(pointer, bytes, advice, location.type == CU_MEM_LOCATION_TYPE_HOST);
}
#endif

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return api("cuMemGetInfo", Needs::kContext, [&](Call& call) {
    const Device& device = *call.context->device;
    if (free != nullptr) *free = device.total > device.used ? device.total - device.used : 0;
    if (total != nullptr) *total = device.total;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return api("cuMemAlloc", Needs::kCanCapture, [&](Call& call) {
    require(pointer != nullptr && bytes != 0);
    *pointer = allocate_block(call, BlockKind::kDevice, bytes);
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  return api("cuMemAllocPitch", Needs::kCanCapture, [&](Call& call) {
    require(pointer != nullptr && pitch != nullptr && width != 0 && height != 0);
    require(element == 4 || element == 8 || element == 16);
    require(width <= SIZE_MAX - kAlignment && height <= SIZE_MAX / round_up(width, kAlignment),
            CUDA_ERROR_OUT_OF_MEMORY);
    const std::size_t row = round_up(width, kAlignment);
    *pointer = allocate_block(call, BlockKind::kDevice, row * height);
    *pitch = row;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags) {
  return api("cuMemAllocManaged", Needs::kCanCapture, [&](Call& call) {
    require(pointer != nullptr && bytes != 0 &&
            (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    *pointer = allocate_block(call, BlockKind::kManaged, bytes);
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return api("cuMemFree", Needs::kCanCapture, [&](Call& call) {
    if (pointer == 0) return;
    Block& block = block_at(call, pointer, &is_of_device);
    if (block.kind == BlockKind::kGraph) return free_graph_memory(block);
    block.freeing = true;
    // Such a free of pooled memory promises that the device is done with it.
    if (block.kind != BlockKind::kPooled) wait_for_device(call, *block.context->device);
    release_block(call.driver, pointer);
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  return api("cuMemGetAddressRange", Needs::kContext, [&](Call& call) {
    const Range range = find_range(call.driver, pointer);
    require(range.kind == RangeKind::kDevice || range.kind == RangeKind::kManaged,
            CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = range.start;
    if (bytes != nullptr) *bytes = range.bytes;
  });
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return allocate_host("cuMemHostAlloc", pointer, bytes, flags);
}
CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return allocate_host("cuMemAllocHost", pointer, bytes, 0);
}
CUresult cuMemFreeHost(void* pointer) {
  return free_host("cuMemFreeHost", pointer, BlockKind::kHost, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  return api("cuMemHostRegister", Needs::kCanCapture, [&](Call& call) {
    require(pointer != nullptr && bytes != 0);
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    require(find_block(call.driver, base) == nullptr &&
                find_block(call.driver, base + bytes - 1) == nullptr,
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    add_block(
        call.driver, base,
        {.kind = BlockKind::kRegistered, .bytes = bytes, .context = call.context, .flags = flags});
  });
}
CUresult cuMemHostUnregister(void* pointer) {
  return free_host("cuMemHostUnregister", pointer, BlockKind::kRegistered,
                   CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned int flags) {
  return api("cuMemHostGetDevicePointer", Needs::kContext, [&](Call& call) {
    const auto address = reinterpret_cast<std::uintptr_t>(host);
    require(flags == 0 && find_range(call.driver, address).kind == RangeKind::kPinned);
    given(device) = address;
  });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* host) {
  return api("cuMemHostGetFlags", Needs::kContext, [&](Call& call) {
    const Block* block = find_block(call.driver, reinterpret_cast<std::uintptr_t>(host));
    require(block != nullptr && block->kind == BlockKind::kHost);
    given(flags) = block->flags;
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return api("cuPointerGetAttribute", Needs::kContext, [&](Call& call) {
    require(data != nullptr);
    return attribute_of(call, data, attribute, pointer);
  });
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  return api("cuPointerGetAttributes", Needs::kContext, [&](Call& call) {
    require(attributes != nullptr && data != nullptr);
    for (unsigned int i = 0; i < count; ++i) {
      if (attribute_of(call, data[i], attributes[i], pointer) == CUDA_SUCCESS) continue;
      tell_none(data[i], attributes[i]);
    }
  });
}

}  // extern "C"
