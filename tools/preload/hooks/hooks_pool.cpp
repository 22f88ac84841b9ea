// The default pool as the program sees it, and its view of the device's memory.

#include "allocator/base/log.hpp"
#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

/// Calls `visit` for each arena of the device whose default pool is `pool`.
template <typename Visit>
void for_arenas_of(Process* process, CUmemoryPool pool, const Visit& visit) noexcept {
  if (process == nullptr) return;
  attempt(LogLevel::kDebug, "the pool was not trimmed", [&] {
    const int device = process->default_pool_of(pool);
    if (device < 0) return;
    for (Arena* const arena : process->contexts().all()) {
      if (arena->device().number() == device) visit(*arena);
    }
  });
}

void add_ours(Arena& arena, CUmemPool_attribute attribute, cuuint64_t& value) {
  arena.pool().poll();
  const Statistics now = arena.pool().in_order();
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) value += now.allocated.current.count;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) value += now.allocated.peak.count;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) value += now.reserved.current.count;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) value += now.reserved.peak.count;
}

/// Limits both figures to what the program could still get of the budget and the device.
void limit(Arena& arena, std::size_t& free, std::size_t& total) noexcept {
  attempt(LogLevel::kDebug, "the device's own figures are reported", [&] {
    (void)arena.device().own().refresh();
    arena.pool().poll();
    const BudgetView view = arena.device().view({free}, {total});
    free = view.free.count;
    total = view.total.count;
  });
}

void set_current(Process& process, int number, CUmemoryPool pool) noexcept {
  Device* device = process.devices().without_attaching(number);
  const bool is_news = device != nullptr || process.default_pool_of(pool) != number;
  if (device == nullptr && is_news) device = process.devices().get(number);
  if (device != nullptr) device->own().set_current(pool);
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;
using weir::Bytes;
using weir::LogLevel;

extern "C" {

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  Call call;
  for_arenas_of(Process::get(), pool, [&](Arena& arena) { (void)arena.trim(call, {keep}); });
  return pass(&Driver::cuMemPoolTrimTo, pool, keep);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Call call;
  const CUresult code = pass(&Driver::cuMemPoolGetAttribute, pool, attribute, value);
  if (code != CUDA_SUCCESS || attribute < CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
      attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    return code;
  }
  for_arenas_of(Process::get(), pool, [&](Arena& arena) {
    add_ours(arena, attribute, *static_cast<cuuint64_t*>(value));
  });
  return code;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Call call;
  const CUresult code = pass(&Driver::cuMemPoolSetAttribute, pool, attribute, value);
  if (code == CUDA_SUCCESS && (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
                               attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)) {
    for_arenas_of(Process::get(), pool, [](Arena& arena) { arena.pool().reset_peaks_in_order(); });
  }
  return code;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* accesses, std::size_t count) {
  Call call;
  const CUresult code = pass(&Driver::cuMemPoolSetAccess, pool, accesses, count);
  Process* const process = code == CUDA_SUCCESS ? Process::get() : nullptr;
  const int owner = process != nullptr ? process->default_pool_of(pool) : -1;
  for (std::size_t i = 0; owner >= 0 && i < count; ++i) {
    const CUmemAccessDesc& access = accesses[i];
    if (access.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      process->contexts().grant(owner, access.location.id);
    }
  }
  return code;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  const Call call;
  const CUresult code = pass(&Driver::cuMemPoolCreate, pool, properties);
  const bool of_device = code == CUDA_SUCCESS &&
                         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                         properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED;
  Process* const process = of_device ? Process::get() : nullptr;
  Device* const device =
      process != nullptr ? process->devices().get(properties->location.id) : nullptr;
  if (device == nullptr) return code;
  attempt(LogLevel::kError, "an own pool is not counted", [&] { device->own().add(*pool); });
  return code;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  const Call call;
  Process* const process = Process::get();
  Device* const device = process != nullptr ? process->device_of(pool) : nullptr;
  const Bytes used = device != nullptr ? device->own().used_by(pool) : Bytes{};
  const CUresult code = pass(&Driver::cuMemPoolDestroy, pool);
  if (code == CUDA_SUCCESS && device != nullptr) process->end_own_pool(*device, pool, used);
  return code;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  const Call call;
  const CUresult code = pass(&Driver::cuDeviceSetMemPool, device, pool);
  Process* const process = code == CUDA_SUCCESS ? Process::get() : nullptr;
  if (process != nullptr) set_current(*process, device, pool);
  return code;
}

#if CUDA_VERSION >= 13000
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  Call call;
  const CUresult code = pass(&Driver::cuMemSetMemPool, location, type, pool);
  Process* const process = code == CUDA_SUCCESS ? Process::get() : nullptr;
  if (process != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
      type == CU_MEM_ALLOCATION_TYPE_PINNED) {
    set_current(*process, location->id, pool);
  }
  return code;
}
#endif

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  Call call;
  Process* const process = Process::get();
  Arena* const arena = process != nullptr ? process->contexts().current() : nullptr;
  if (arena == nullptr) return pass(&Driver::cuMemGetInfo_v2, free, total);
  std::size_t free_now = 0;
  std::size_t total_now = 0;
  const CUresult code = process->driver().cuMemGetInfo_v2(&free_now, &total_now);
  if (code != CUDA_SUCCESS) return code;
  limit(*arena, free_now, total_now);
  if (free != nullptr) *free = free_now;
  if (total != nullptr) *total = total_now;
  return code;
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  Call call;
  const CUresult code = pass(&Driver::cuDeviceTotalMem_v2, bytes, device);
  Process* const process = code == CUDA_SUCCESS ? Process::get() : nullptr;
  if (process != nullptr) *bytes = process->devices().visible_budget(device, {*bytes}).count;
  return code;
}

}  // extern "C"
