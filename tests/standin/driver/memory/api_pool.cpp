// Pools: memory allocated and freed in the order of a stream.

#include "tests/standin/driver/memory/graph_memory.hpp"
#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/per_thread.hpp"
#include "tests/standin/driver/streams/capture.hpp"
#include "tests/standin/driver/streams/stream.hpp"

namespace {

using namespace weir::standin;

/// During a capture, memory belongs to the graph.
CUresult allocate_in_capture(Call& call, CUdeviceptr* pointer, std::size_t bytes,
                             const std::shared_ptr<Pool>& pool, Stream& stream) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const CUresult result = allocate_in_graph(call, capture.graph, pool, bytes, pointer);
  return result == CUDA_SUCCESS ? add_to_capture(stream, {.is_memory = true}) : result;
}

CUresult free_in_capture(const Block& block, Stream& stream) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const CUresult result = free_in_graph(capture.graph, capture.target.get(), &block);
  capture.invalid = result != CUDA_SUCCESS;
  return result == CUDA_SUCCESS ? add_to_capture(stream, {.is_memory = true}) : result;
}

/// Finds memory at the call and hands it out in the stream's order. That needs no operation:
/// earlier work of the stream cannot touch it.
CUresult allocate(Call& call, CUdeviceptr* pointer, std::size_t bytes,
                  const std::shared_ptr<Pool>& pool, CUstream handle) {
  const std::shared_ptr<Stream> stream = find_stream(call, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture) return allocate_in_capture(call, pointer, bytes, pool, *stream);
  if (bytes > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t charged = round_up(bytes, kAlignment);
  if (!charge_pool(*pool, charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = take_memory(BlockKind::kPooled, bytes);
  if (memory == nullptr) {
    pool->used -= charged;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  add_block(call.driver, *pointer,
            {.kind = BlockKind::kPooled,
             .bytes = bytes,
             .charged = charged,
             .context = call.context,
             .pool = pool});
  return CUDA_SUCCESS;
}

template <typename Body>
CUresult with_pool(const char* name, CUmemoryPool handle, Body body) {
  return api(name, Needs::kDriver, [&](Call& call) {
    const auto* found = call.driver.pools.find(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Pool> pool = *found;
    return body(call, pool);
  });
}

#if CUDA_VERSION >= 13000
template <typename Body>
CUresult at_location(const char* name, const CUmemLocation* location, CUmemAllocationType type,
                     Body body) {
  return api(name, Needs::kDriver, [&](Call& call) {
    if (location == nullptr || location->type < CU_MEM_LOCATION_TYPE_DEVICE ||
        location->type > CU_MEM_LOCATION_TYPE_HOST_NUMA ||
        (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    Device* device = find_device(call.driver, location->id);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(call, *device);
  });
}
#endif

std::uint64_t* counter_of(Pool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool.release_threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &pool.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool.reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &pool.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool.used_high;
    default:
      return nullptr;
  }
}

bool is_reuse(CUmemPool_attribute attribute) {
  return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return api("cuMemAllocAsync", Needs::kContext, [&](Call& call) {
    return allocate(call, pointer, bytes, call.context->device->pool, stream);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool handle,
                                 CUstream stream) {
  return api("cuMemAllocFromPoolAsync", Needs::kContext, [&](Call& call) {
    const auto* pool = call.driver.pools.find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : allocate(call, pointer, bytes, *pool, stream);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  return api("cuMemFreeAsync", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (pointer == 0) return CUDA_SUCCESS;
    const auto found = call.driver.blocks.find(pointer);
    if (found == call.driver.blocks.end() || found->second.freeing ||
        !is_of_device(found->second.kind) || found->second.kind == BlockKind::kManaged) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream->capture) return free_in_capture(found->second, *stream);
    const CUresult implicit = check_implicit(call, *stream);
    if (implicit != CUDA_SUCCESS) return implicit;
    if (found->second.kind == BlockKind::kGraph) return free_graph_memory_on(stream, found->second);
    found->second.freeing = true;
    Driver* the_driver = &call.driver;
    const CUresult submitted =
        submit(call, stream, {.settle = [=] { release_block(*the_driver, pointer); }});
    if (submitted != CUDA_SUCCESS) found->second.freeing = false;
    return submitted;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  return api("cuMemPoolCreate", Needs::kDriver, [&](Call& call) {
    if (handle == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    Device* device = find_device(call.driver, properties->location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto pool = std::make_shared<Pool>();
    pool->device = device;
    pool->max_size = properties->maxSize;
    *handle = pool->handle = call.driver.pools.add(pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return with_pool("cuMemPoolDestroy", handle, [](Call& call, const std::shared_ptr<Pool>& pool) {
    if (pool == pool->device->default_pool) return CUDA_ERROR_INVALID_VALUE;
    if (pool->device->pool == pool) pool->device->pool = pool->device->default_pool;
    pool->destroyed = true;
    trim_pool(*pool, 0);
    call.driver.pools.remove(pool->handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  return with_pool("cuMemPoolTrimTo", handle,
                   [&](Call& /*call*/, const std::shared_ptr<Pool>& pool) {
                     trim_pool(*pool, keep);
                     return CUDA_SUCCESS;
                   });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool("cuMemPoolSetAttribute", handle,
                   [&](Call& /*call*/, const std::shared_ptr<Pool>& pool) {
                     if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     if (is_reuse(attribute)) {
                       pool->reuse[attribute] = *static_cast<int*>(value);
                       return CUDA_SUCCESS;
                     }
                     const auto wanted = *static_cast<cuuint64_t*>(value);
                     switch (attribute) {
                       case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                         pool->release_threshold = wanted;
                         return CUDA_SUCCESS;
                       case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                         pool->reserved_high = pool->reserved;
                         return wanted == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
                       case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                         pool->used_high = pool->used;
                         return wanted == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
                       default:
                         return CUDA_ERROR_INVALID_VALUE;
                     }
                   });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool("cuMemPoolGetAttribute", handle,
                   [&](Call& /*call*/, const std::shared_ptr<Pool>& pool) {
                     if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     if (is_reuse(attribute)) {
                       const auto found = pool->reuse.find(attribute);
                       *static_cast<int*>(value) = found == pool->reuse.end() ? 1 : found->second;
                       return CUDA_SUCCESS;
                     }
                     const std::uint64_t* counter = counter_of(*pool, attribute);
                     if (counter == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     *static_cast<cuuint64_t*>(value) = *counter;
                     return CUDA_SUCCESS;
                   });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return api("cuDeviceGetDefaultMemPool", Needs::kDriver, [&](Call& call) {
    const Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool = device->default_pool->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return api("cuDeviceGetMemPool", Needs::kDriver, [&](Call& call) {
    const Device* device = find_device(call.driver, ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool = device->pool->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  return with_pool("cuDeviceSetMemPool", handle,
                   [&](Call& call, const std::shared_ptr<Pool>& pool) {
                     Device* device = find_device(call.driver, ordinal);
                     if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
                     if (pool->device != device) return CUDA_ERROR_INVALID_VALUE;
                     device->pool = pool;
                     return CUDA_SUCCESS;
                   });
}

#if CUDA_VERSION >= 13000
// By location: a device, as above; there are no others.
CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  return at_location("cuMemGetDefaultMemPool", location, type, [&](Call& /*call*/, Device& device) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool = device.default_pool->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return at_location("cuMemGetMemPool", location, type, [&](Call& /*call*/, Device& device) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool = device.pool->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  return at_location("cuMemSetMemPool", location, type, [&](Call& call, Device& device) {
    const auto* pool = call.driver.pools.find(handle);
    if (pool == nullptr || (*pool)->device != &device) return CUDA_ERROR_INVALID_VALUE;
    device.pool = *pool;
    return CUDA_SUCCESS;
  });
}
#endif

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return cuMemAllocAsync(pointer, bytes, per_thread(stream));
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return cuMemAllocFromPoolAsync(pointer, bytes, pool, per_thread(stream));
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return cuMemFreeAsync(pointer, per_thread(stream));
}

}  // extern "C"
