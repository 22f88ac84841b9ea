// Memory that the driver serves outside the pool, counted against the budget.

#include <algorithm>
#include <optional>

#include "tools/preload/driver/nvml.hpp"
#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

/// Makes room for `bytes` in the budget, lets the driver serve them by `call`, and counts them
/// under `handle()`. If the driver has no room, first gives back what the pools cache.
template <typename Call, typename Handle>
CUresult counted(Process* process, Account* account, CUcontext context, Kind kind, Bytes bytes,
                 const Call& call, const Handle& handle) noexcept {
  if (account == nullptr) return call();
  if (!process->make_room(*account, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult code = call();
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    (void)process->trim(*account, bytes);
    code = call();
  }
  if (code != CUDA_SUCCESS) {
    account->give_back(bytes);
    return code;
  }
  process->count(*account, kind, bytes, handle(), context);
  return code;
}

/// The same for memory of the current context.
template <typename Call, typename Handle>
CUresult counted(Kind kind, Bytes bytes, const Call& call, const Handle& handle) noexcept {
  const Entry entry;
  Process* const process = Process::get();
  Account* const account = process != nullptr ? process->current_account() : nullptr;
  return counted(process, account, account != nullptr ? process->current_context() : nullptr, kind,
                 bytes, call, handle);
}

/// Calls `call` for managed memory, and again after the pools gave back their cache if the device
/// is full: on some devices managed memory is all device memory.
template <typename Call>
CUresult with_room(Bytes bytes, const Call& call) noexcept {
  const CUresult code = call();
  if (code != CUDA_ERROR_OUT_OF_MEMORY) return code;
  Process* const process = Process::get();
  Account* const account = process != nullptr ? process->current_account() : nullptr;
  if (account == nullptr) return code;
  Fences::begin_request();
  (void)process->trim(*account, bytes);
  return call();
}

/// The same for memory that is not only the device's and never refused: counts it afterwards.
template <typename Call, typename Handle>
CUresult counted_after(Kind kind, Bytes bytes, const Call& call, const Handle& handle) noexcept {
  const Entry entry;
  const CUresult code = call();
  Process* const process = code == CUDA_SUCCESS ? Process::get() : nullptr;
  Account* const account = process != nullptr ? process->current_account() : nullptr;
  if (account == nullptr) return code;
  process->count(*account, kind, bytes, handle(), process->current_context());
  return code;
}

/// Frees by `call` what one of those allocated.
template <typename Call>
CUresult uncounted(Kind kind, std::uint64_t handle, const Call& call) noexcept {
  const Entry hook;
  Process* const process = Process::get();
  if (process == nullptr) return call();
  const auto entry = process->passed().take(kind, handle);
  const CUresult code = call();
  process->passed().settle(handle, entry, code == CUDA_SUCCESS);
  return code;
}

std::uint64_t number(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}

std::size_t element_bytes(CUarray_format format) noexcept {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 1;  // block-compressed and video formats take about a byte per texel
  }
}

/// Returns the least that an array of this description takes; devices round it up.
template <typename Descriptor>
Bytes array_bytes(const Descriptor* d) noexcept {
  if (d == nullptr) return {};
  Bytes bytes{std::max<std::size_t>(d->Width, 1) * std::max<std::size_t>(d->Height, 1)};
  if constexpr (requires { d->Depth; }) bytes = bytes * std::max<std::size_t>(d->Depth, 1);
  return bytes * element_bytes(d->Format) * d->NumChannels;
}

/// Notes that a graph gets an allocation node there.
void note_allocation_node(const CUmemLocation& location) noexcept {
  const Entry entry;
  Process* const process = Process::get();
  if (process == nullptr || location.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
  Account* const account = process->account(location.id);
  if (account != nullptr) account->use_graphs();
}

#if CUDA_VERSION >= 12020
void note_node(const CUgraphNodeParams* parameters) noexcept {
  const bool allocates = parameters != nullptr && parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  if (allocates) note_allocation_node(parameters->alloc.poolProps.location);
}
#endif

/// The most believed of one context: free memory also changes by other programs.
constexpr Bytes kMostOfAContext = gib(1);

/// Returns the free memory of the current context's device, as the driver says.
std::optional<Bytes> free_now(const Driver& driver) noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  if (driver.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return std::nullopt;
  return Bytes{free};
}

/// Loads code by `call`, and counts how much less the device has afterwards.
template <typename Call, typename Handle>
CUresult loaded(const Call& call, const Handle& handle) noexcept {
  const Entry entry;
  Process* const process = Process::get();
  Arena* const arena = process != nullptr ? process->current() : nullptr;
  if (arena == nullptr || arena->fences().capturing()) return call();
  // What the driver loads in between is not measured separately.
  const Inside inside;
  Account& account = arena->account();
  Loads& loads = process->loads();
  if (loads.begin(account)) loads.note_before(account, free_now(process->driver()));
  const CUresult code = call();
  const bool good = code == CUDA_SUCCESS;
  if (loads.end(account,
                good ? std::optional(Loads::Loaded{handle(), arena->context()}) : std::nullopt)) {
    loads.measure(account, free_now(process->driver()),
                  [&](const Loads::Loaded& each, Bytes bytes) {
                    process->count(account, Kind::kModules, bytes, each.handle, each.context);
                  });
  }
  return code;
}

/// Unloads by `call` what `loaded` loaded.
template <typename Call>
CUresult unloaded(std::uint64_t handle, const Call& call) noexcept {
  {
    const Entry entry;
    if (Process* const process = Process::get()) process->loads().forget(handle);
  }
  return uncounted(Kind::kModules, handle, call);
}

/// Retains a primary context by `call`. If that creates it, counts how much less the device has
/// afterwards, over all programs: of two that start together, one may count part of the other's.
template <typename Call>
CUresult retained(CUcontext* context, CUdevice device, const Call& call) noexcept {
  const Entry entry;
  Process* const process = Process::get();
  if (process == nullptr) return call();
  PrimaryContexts& primaries = process->primary_contexts();
  const bool makes_it = primaries.is_active(device) == std::optional(false);
  const auto before = makes_it ? free_without_context(process->driver(), device) : std::nullopt;
  CUresult code = CUDA_SUCCESS;
  {
    // Not between the end of the previous context and our forgetting it.
    const Lock lock(primaries.of(device));
    code = call();
  }
  Account* const account = code == CUDA_SUCCESS && before ? process->account(device) : nullptr;
  if (account == nullptr) return code;
  const auto after = free_without_context(process->driver(), device);
  const Bytes taken = std::min(minus_or_zero(*before, after.value_or(*before)), kMostOfAContext);
  if (taken.count == 0) return code;
  account->charge(taken);
  process->count(*account, Kind::kContexts, taken, number(*context), *context);
  return code;
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;
using weir::Bytes;

extern "C" {

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  return counted(
      Kind::kArrays, array_bytes(description),
      [&] { return pass(&Driver::cuArrayCreate_v2, array, description); },
      [&] { return number(*array); });
}

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return counted(
      Kind::kArrays, array_bytes(description),
      [&] { return pass(&Driver::cuArray3DCreate_v2, array, description); },
      [&] { return number(*array); });
}

CUresult cuArrayDestroy(CUarray array) {
  return uncounted(Kind::kArrays, number(array),
                   [&] { return pass(&Driver::cuArrayDestroy, array); });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* description,
                                unsigned int levels) {
  const Bytes first = array_bytes(description);
  return counted(
      Kind::kArrays, levels > 1 ? Bytes{first.count + first.count / 3} : first,
      [&] { return pass(&Driver::cuMipmappedArrayCreate, array, description, levels); },
      [&] { return number(*array); });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return uncounted(Kind::kArrays, number(array),
                   [&] { return pass(&Driver::cuMipmappedArrayDestroy, array); });
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned int flags) {
  return counted_after(
      Kind::kManaged, {bytes},
      [&] {
        return with_room({bytes},
                         [&] { return pass(&Driver::cuMemAllocManaged, pointer, bytes, flags); });
      },
      [&] { return *pointer; });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  const Entry entry;
  const auto by_driver = [&] {
    return pass(&Driver::cuMemCreate, handle, bytes, properties, flags);
  };
  if (properties == nullptr || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return by_driver();
  }
  Process* const process = Process::get();
  Account* const account = process != nullptr ? process->account(properties->location.id) : nullptr;
  // Belongs to a device, not a context: it outlives contexts.
  return counted(process, account, nullptr, Kind::kMappable, {bytes}, by_driver,
                 [&] { return static_cast<std::uint64_t>(*handle); });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return uncounted(Kind::kMappable, handle, [&] { return pass(&Driver::cuMemRelease, handle); });
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return counted_after(
      Kind::kHost, {bytes}, [&] { return pass(&Driver::cuMemHostAlloc, pointer, bytes, flags); },
      [&] { return number(*pointer); });
}

CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return counted_after(
      Kind::kHost, {bytes}, [&] { return pass(&Driver::cuMemAllocHost_v2, pointer, bytes); },
      [&] { return number(*pointer); });
}

CUresult cuMemFreeHost(void* pointer) {
  return uncounted(Kind::kHost, number(pointer),
                   [&] { return pass(&Driver::cuMemFreeHost, pointer); });
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  if (parameters != nullptr) note_allocation_node(parameters->poolProps.location);
  return pass(&Driver::cuGraphAddMemAllocNode, node, graph, dependencies, count, parameters);
}

#if CUDA_VERSION >= 12020
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        std::size_t count, CUgraphNodeParams* parameters) {
  note_node(parameters);
  return pass(&Driver::cuGraphAddNode, node, graph, dependencies, count, parameters);
}
#endif
#if CUDA_VERSION >= 12030
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, std::size_t count,
                           CUgraphNodeParams* parameters) {
  note_node(parameters);
  return pass(&Driver::cuGraphAddNode_v2, node, graph, dependencies, edges, count, parameters);
}
#endif

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return retained(context, device,
                  [&] { return pass(&Driver::cuDevicePrimaryCtxRetain, context, device); });
}

CUresult cuModuleLoad(CUmodule* module, const char* file) {
  return loaded([&] { return pass(&Driver::cuModuleLoad, module, file); },
                [&] { return number(*module); });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return loaded([&] { return pass(&Driver::cuModuleLoadData, module, image); },
                [&] { return number(*module); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  return loaded(
      [&] { return pass(&Driver::cuModuleLoadDataEx, module, image, count, options, values); },
      [&] { return number(*module); });
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return loaded([&] { return pass(&Driver::cuModuleLoadFatBinary, module, image); },
                [&] { return number(*module); });
}

CUresult cuModuleUnload(CUmodule module) {
  return unloaded(number(module), [&] { return pass(&Driver::cuModuleUnload, module); });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options,
                           void** values, unsigned int count, CUlibraryOption* library_options,
                           void** library_values, unsigned int library_count) {
  return loaded(
      [&] {
        return pass(&Driver::cuLibraryLoadData, library, code, options, values, count,
                    library_options, library_values, library_count);
      },
      [&] { return number(*library); });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* options,
                               void** values, unsigned int count, CUlibraryOption* library_options,
                               void** library_values, unsigned int library_count) {
  return loaded(
      [&] {
        return pass(&Driver::cuLibraryLoadFromFile, library, file, options, values, count,
                    library_options, library_values, library_count);
      },
      [&] { return number(*library); });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return unloaded(number(library), [&] { return pass(&Driver::cuLibraryUnload, library); });
}

}  // extern "C"
