// Pools: memory allocated and freed in the order of a stream.

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

namespace {

using namespace weir::standin;

/// During a capture, memory belongs to the graph.
CUdeviceptr allocate_in_capture(Call& call, std::size_t bytes, const std::shared_ptr<Pool>& pool,
                                Stream& stream) {
  Capture& capture = *stream.capture;
  require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  const CUdeviceptr pointer = allocate_in_graph(call, capture.graph, pool, bytes);
  add_to_capture(stream, {.is_memory = true});
  return pointer;
}

void free_in_capture(const Block& block, Stream& stream) {
  Capture& capture = *stream.capture;
  require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  capture.invalid = true;  // if this fails
  free_in_graph(capture.graph, capture.target.get(), &block);
  capture.invalid = false;
  add_to_capture(stream, {.is_memory = true});
}

/// Finds memory at the call and hands it out in the stream's order. That needs no operation:
/// earlier work of the stream cannot touch it.
void allocate(Call& call, CUdeviceptr* pointer, std::size_t bytes,
              const std::shared_ptr<Pool>& pool, CUstream handle) {
  const std::shared_ptr<Stream> stream = get_stream(call, handle);
  require(pointer != nullptr && bytes != 0);
  if (stream->capture) {
    *pointer = allocate_in_capture(call, bytes, pool, *stream);
    return;
  }
  require(bytes <= SIZE_MAX / 2, CUDA_ERROR_OUT_OF_MEMORY);
  const std::size_t charged = round_up(bytes, kAlignment);
  charge_pool(*pool, charged);
  void* memory = take_memory(BlockKind::kPooled, bytes);
  if (memory == nullptr) pool->used -= charged;
  require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  add_block(call.driver, *pointer,
            {.kind = BlockKind::kPooled,
             .bytes = bytes,
             .charged = charged,
             .context = call.context,
             .pool = pool});
}

template <typename Body>
CUresult on_pool(const char* name, CUmemoryPool handle, Body body) {
  return api(name, Needs::kDriver, [&](Call& call) {
    const std::shared_ptr<Pool> pool = call.driver.pools.get(handle);
    body(call, pool);
  });
}

/// Returns one of a device's pools.
CUresult get_pool(const char* name, CUmemoryPool* pool, CUdevice ordinal,
                  std::shared_ptr<Pool> Device::*which) {
  return api(name, Needs::kDriver, [&](Call& call) {
    const Device& device = get_device(call.driver, ordinal);
    given(pool) = (device.*which)->handle;
  });
}

CUresult set_pool(const char* name, CUdevice ordinal, CUmemoryPool handle) {
  return on_pool(name, handle, [&](Call& call, const std::shared_ptr<Pool>& pool) {
    Device& device = get_device(call.driver, ordinal);
    require(pool->device == &device);
    device.pool = pool;
  });
}

#if CUDA_VERSION >= 13000
/// A location: a device, as there are no others. Calls `body` with it.
template <typename Body>
CUresult at_location(const char* name, const CUmemLocation* location, CUmemAllocationType type,
                     Body body) {
  const bool known =
      location != nullptr && location->type >= CU_MEM_LOCATION_TYPE_DEVICE &&
      location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA &&
      (type == CU_MEM_ALLOCATION_TYPE_PINNED || type == CU_MEM_ALLOCATION_TYPE_MANAGED);
  if (known && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
      type == CU_MEM_ALLOCATION_TYPE_PINNED) {
    return body(location->id);
  }
  return api(name, Needs::kDriver, [&](Call& /*call*/) {
    return known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
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
    allocate(call, pointer, bytes, call.context->device->pool, stream);
  });
}
WEIR_PTSZ(cuMemAllocAsync, (CUdeviceptr * pointer, size_t bytes, CUstream stream), pointer, bytes,
          stream)

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool handle,
                                 CUstream stream) {
  return api("cuMemAllocFromPoolAsync", Needs::kContext, [&](Call& call) {
    allocate(call, pointer, bytes, call.driver.pools.get(handle), stream);
  });
}
WEIR_PTSZ(cuMemAllocFromPoolAsync,
          (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream), pointer, bytes,
          pool, stream)

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  return api("cuMemFreeAsync", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    if (pointer == 0) return;
    const auto found = call.driver.blocks.find(pointer);
    require(found != call.driver.blocks.end());
    Block& block = found->second;
    require(!block.freeing && is_of_device(block.kind) && block.kind != BlockKind::kManaged);
    if (stream->capture) return free_in_capture(block, *stream);
    check_implicit(call, *stream);
    if (block.kind == BlockKind::kGraph) return free_graph_memory_on(stream, block);
    block.freeing = true;
    Driver* the_driver = &call.driver;
    submit(call, stream, {.settle = [=] { release_block(*the_driver, pointer); }});
  });
}
WEIR_PTSZ(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), pointer, stream)

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  return api("cuMemPoolCreate", Needs::kDriver, [&](Call& call) {
    require(handle != nullptr && properties != nullptr);
    require(properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE,
            CUDA_ERROR_NOT_SUPPORTED);
    auto pool = std::make_shared<Pool>();
    pool->device = &get_device(call.driver, properties->location.id, CUDA_ERROR_INVALID_VALUE);
    pool->max_size = properties->maxSize;
    *handle = pool->handle = call.driver.pools.add(pool);
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return on_pool("cuMemPoolDestroy", handle, [](Call& call, const std::shared_ptr<Pool>& pool) {
    require(pool != pool->device->default_pool);
    if (pool->device->pool == pool) pool->device->pool = pool->device->default_pool;
    pool->destroyed = true;
    trim_pool(*pool, 0);
    call.driver.pools.remove(pool->handle);
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  return on_pool("cuMemPoolTrimTo", handle,
                 [&](Call&, const auto& pool) { trim_pool(*pool, keep); });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return on_pool("cuMemPoolSetAttribute", handle, [&](Call&, const auto& pool) {
    require(value != nullptr);
    if (is_reuse(attribute)) {
      pool->reuse[attribute] = *static_cast<int*>(value);
      return;
    }
    const auto wanted = *static_cast<cuuint64_t*>(value);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      pool->release_threshold = wanted;
      return;
    }
    const bool used = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    require(used || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    (used ? pool->used_high : pool->reserved_high) = used ? pool->used : pool->reserved;
    require(wanted == 0);
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return on_pool("cuMemPoolGetAttribute", handle, [&](Call&, const auto& pool) {
    require(value != nullptr);
    if (is_reuse(attribute)) {
      const auto found = pool->reuse.find(attribute);
      *static_cast<int*>(value) = found == pool->reuse.end() ? 1 : found->second;
      return;
    }
    *static_cast<cuuint64_t*>(value) = given(counter_of(*pool, attribute));
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return get_pool("cuDeviceGetDefaultMemPool", pool, ordinal, &Device::default_pool);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return get_pool("cuDeviceGetMemPool", pool, ordinal, &Device::pool);
}
CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  return set_pool("cuDeviceSetMemPool", ordinal, handle);
}

#if CUDA_VERSION >= 13000
CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  constexpr const char* kName = "cuMemGetDefaultMemPool";
  return at_location(kName, location, type, [&](CUdevice ordinal) {
    return get_pool(kName, pool, ordinal, &Device::default_pool);
  });
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  constexpr const char* kName = "cuMemGetMemPool";
  return at_location(kName, location, type, [&](CUdevice ordinal) {
    return get_pool(kName, pool, ordinal, &Device::pool);
  });
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  constexpr const char* kName = "cuMemSetMemPool";
  return at_location(kName, location, type,
                     [&](CUdevice ordinal) { return set_pool(kName, ordinal, handle); });
}
#endif

}  // extern "C"
