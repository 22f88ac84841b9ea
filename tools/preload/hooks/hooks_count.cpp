// Memory that the driver serves outside the pool, counted against the budget.

#include <algorithm>
#include <optional>

#include "tools/preload/driver/nvml.hpp"
#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

/// Obtains memory of the current context's device, which `function(made, arguments...)` serves.
template <typename Handle, typename F, typename... Args>
CUresult counted(Kind kind, Bytes bytes, F Driver::*function, Handle* made,
                 Args... arguments) noexcept {
  Call call;
  Process* const process = Process::get();
  const bool here = process != nullptr;
  return obtain(
      call, process, here ? process->devices().current() : nullptr,
      {.kind = kind,
       .bytes = bytes,
       .context = here ? process->contexts().current_context() : nullptr},
      [&] { return pass(function, made, arguments...); }, made);
}

/// Frees it.
template <typename Handle, typename F>
CUresult uncounted(Kind kind, F Driver::*function, Handle handle) noexcept {
  const Call call;
  Process* const process = Process::get();
  if (process == nullptr) return pass(function, handle);
  const auto entry = process->passed().take(kind, number(handle));
  const CUresult code = pass(function, handle);
  process->passed().settle(number(handle), entry, code == CUDA_SUCCESS);
  return code;
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

/// Adds an allocation node of `bytes` by `add()`, and makes room for it. Its address is in
/// `pointer`.
template <typename Add>
CUresult added_allocation(const CUmemLocation& location, std::size_t bytes,
                          const CUdeviceptr* pointer, const Add& add) noexcept {
  Call call;
  Process* const process = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? Process::get() : nullptr;
  Device* const device = process != nullptr ? process->devices().get(location.id) : nullptr;
  if (device != nullptr) device->own().use_graphs();
  return obtain(call, process, device, {.kind = Kind::kGraphs, .bytes = {bytes}}, add, pointer);
}

#if CUDA_VERSION >= 12020
/// The same for any node.
template <typename Add>
CUresult added_node(CUgraphNodeParams* parameters, const Add& add) noexcept {
  if (parameters == nullptr || parameters->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return add();
  return added_allocation(parameters->alloc.poolProps.location, parameters->alloc.bytesize,
                          &parameters->alloc.dptr, add);
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

/// Loads code by `function(made, arguments...)`, and counts how much less the device has
/// afterwards.
template <typename Handle, typename F, typename... Args>
CUresult loaded(F Driver::*function, Handle* made, Args... arguments) noexcept {
  Call call;
  Process* const process = Process::get();
  Arena* const arena = process != nullptr ? process->contexts().current() : nullptr;
  if (arena == nullptr || arena->fences().capturing()) return pass(function, made, arguments...);
  // What the driver loads in between is not measured separately.
  const Inside inside;
  Account& account = arena->account();
  Loads& loads = process->loads();
  if (loads.begin(account)) loads.note_before(account, free_now(process->driver()));
  const CUresult code = obtain(
      call, process, &arena->device(), {.kind = Kind::kModules},
      [&] { return pass(function, made, arguments...); }, made);
  std::optional<Loads::Loaded> mine;
  if (code == CUDA_SUCCESS) mine = {number(*made), arena->context()};
  if (loads.end(account, mine)) {
    loads.measure(account, free_now(process->driver()),
                  [&](const Loads::Loaded& each, Bytes bytes) {
                    process->count(account, Kind::kModules, bytes, each.handle, each.context);
                  });
  }
  return code;
}

/// Unloads what `loaded` loaded.
template <typename Handle, typename F>
CUresult unloaded(F Driver::*function, Handle handle) noexcept {
  {
    const Call call;
    if (Process* const process = Process::get()) process->loads().forget(number(handle));
  }
  return uncounted(Kind::kModules, function, handle);
}

/// Makes a context on `device` by `make()`, and counts how much less the device has afterwards,
/// over all programs: of two that start together, one may count part of the other's.
template <typename Make>
CUresult made_context(Process& process, Call& call, CUdevice device, CUcontext* context,
                      const Make& make) noexcept {
  const auto before = free_without_context(process.driver(), device);
  // Only a device that was used has something to release.
  Device* const known = process.devices().without_attaching(device);
  const CUresult code = obtain(call, &process, known, {.kind = Kind::kContexts}, make, context);
  Device* const its = code == CUDA_SUCCESS && before ? process.devices().get(device) : nullptr;
  if (its == nullptr) return code;
  const auto after = free_without_context(process.driver(), device);
  const Bytes taken = std::min(minus_or_zero(*before, after.value_or(*before)), kMostOfAContext);
  if (taken.count == 0) return code;
  its->account().charge(taken);
  process.count(its->account(), Kind::kContexts, taken, number(*context), *context);
  return code;
}

CUresult retained(CUcontext* context, CUdevice device) noexcept {
  Call call;
  Process* const process = Process::get();
  if (process == nullptr) return pass(&Driver::cuDevicePrimaryCtxRetain, context, device);
  PrimaryContexts& primaries = process->contexts().primaries();
  const auto retain = [&] {
    // Not between the end of the previous context and our forgetting it.
    const Lock lock(primaries.of(device));
    return pass(&Driver::cuDevicePrimaryCtxRetain, context, device);
  };
  const bool makes_it = primaries.is_active(device) == std::optional(false);
  return makes_it ? made_context(*process, call, device, context, retain) : retain();
}

/// `function(context, arguments..., device)` makes a context of the program's own.
template <typename F, typename... Args>
CUresult created_context(F Driver::*function, CUcontext* context, CUdevice device,
                         Args... arguments) noexcept {
  Call call;
  Process* const process = Process::get();
  const auto make = [&] { return pass(function, context, arguments..., device); };
  return process != nullptr ? made_context(*process, call, device, context, make) : make();
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;
using weir::Bytes;

extern "C" {

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  return counted(Kind::kArrays, array_bytes(description), &Driver::cuArrayCreate_v2, array,
                 description);
}

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return counted(Kind::kArrays, array_bytes(description), &Driver::cuArray3DCreate_v2, array,
                 description);
}

CUresult cuArrayDestroy(CUarray array) {
  return uncounted(Kind::kArrays, &Driver::cuArrayDestroy, array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* description,
                                unsigned int levels) {
  const Bytes first = array_bytes(description);
  return counted(Kind::kArrays, levels > 1 ? Bytes{first.count + first.count / 3} : first,
                 &Driver::cuMipmappedArrayCreate, array, description, levels);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return uncounted(Kind::kArrays, &Driver::cuMipmappedArrayDestroy, array);
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned int flags) {
  return counted(Kind::kManaged, {bytes}, &Driver::cuMemAllocManaged, pointer, bytes, flags);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  Call call;
  const bool of_device =
      properties != nullptr && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  Process* const process = of_device ? Process::get() : nullptr;
  // Belongs to a device, not a context: it outlives contexts.
  return obtain(
      call, process, process != nullptr ? process->devices().get(properties->location.id) : nullptr,
      {.kind = Kind::kMappable, .bytes = {bytes}},
      [&] { return pass(&Driver::cuMemCreate, handle, bytes, properties, flags); }, handle);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                        CUmemAllocationHandleType type) {
  return counted(Kind::kImported, {}, &Driver::cuMemImportFromShareableHandle, handle, shared,
                 type);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return counted(Kind::kImported, {}, &Driver::cuIpcOpenMemHandle_v2, pointer, handle, flags);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return uncounted(Kind::kMappable, &Driver::cuMemRelease, handle);
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return counted(Kind::kHost, {bytes}, &Driver::cuMemHostAlloc, pointer, bytes, flags);
}

CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return counted(Kind::kHost, {bytes}, &Driver::cuMemAllocHost_v2, pointer, bytes);
}

CUresult cuMemFreeHost(void* pointer) {
  return uncounted(Kind::kHost, &Driver::cuMemFreeHost, pointer);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  const auto add = [&] {
    return pass(&Driver::cuGraphAddMemAllocNode, node, graph, dependencies, count, parameters);
  };
  if (parameters == nullptr) return add();
  return added_allocation(parameters->poolProps.location, parameters->bytesize, &parameters->dptr,
                          add);
}

#if CUDA_VERSION >= 12020
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        std::size_t count, CUgraphNodeParams* parameters) {
  return added_node(parameters, [&] {
    return pass(&Driver::cuGraphAddNode, node, graph, dependencies, count, parameters);
  });
}
#endif
#if CUDA_VERSION >= 12030
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, std::size_t count,
                           CUgraphNodeParams* parameters) {
  return added_node(parameters, [&] {
    return pass(&Driver::cuGraphAddNode_v2, node, graph, dependencies, edges, count, parameters);
  });
}
#endif

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return created_context(&Driver::cuCtxCreate_v2, context, device, flags);
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                        unsigned int flags, CUdevice device) {
  return created_context(&Driver::cuCtxCreate_v3, context, device, affinity, count, flags);
}
#if CUDA_VERSION >= 12050
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                        CUdevice device) {
  return created_context(&Driver::cuCtxCreate_v4, context, device, parameters, flags);
}
#endif

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return retained(context, device);
}

CUresult cuModuleLoad(CUmodule* module, const char* file) {
  return loaded(&Driver::cuModuleLoad, module, file);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return loaded(&Driver::cuModuleLoadData, module, image);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  return loaded(&Driver::cuModuleLoadDataEx, module, image, count, options, values);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return loaded(&Driver::cuModuleLoadFatBinary, module, image);
}

CUresult cuModuleUnload(CUmodule module) { return unloaded(&Driver::cuModuleUnload, module); }

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options,
                           void** values, unsigned int count, CUlibraryOption* library_options,
                           void** library_values, unsigned int library_count) {
  return loaded(&Driver::cuLibraryLoadData, library, code, options, values, count, library_options,
                library_values, library_count);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* options,
                               void** values, unsigned int count, CUlibraryOption* library_options,
                               void** library_values, unsigned int library_count) {
  return loaded(&Driver::cuLibraryLoadFromFile, library, file, options, values, count,
                library_options, library_values, library_count);
}

CUresult cuLibraryUnload(CUlibrary library) { return unloaded(&Driver::cuLibraryUnload, library); }

}  // extern "C"
