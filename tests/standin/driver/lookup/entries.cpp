// The table of cuGetProcAddress.

#include "tests/standin/driver/lookup/entries.hpp"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <climits>

#include "tests/standin/standin.hpp"

#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuEventElapsedTime
#undef cuGetProcAddress
#undef cuGraphAddNode
#undef cuMemAdvise
#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync

extern "C" {

// Not in <cuda.h>, or not in every toolkit's.
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device);
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end);
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
CUfunction weir_standin_function_of(const void* symbol);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count);
#if CUDA_VERSION >= 12020
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* parameters);
#endif
#if CUDA_VERSION >= 12080
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                            size_t* failed, CUstream stream);
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
                              unsigned long long flags, CUstream stream);
#endif

// Each has the type of the function of which it is a variant.
extern decltype(cuMemcpy) cuMemcpy_ptds;
extern decltype(cuMemcpyHtoD_v2) cuMemcpyHtoD_v2_ptds;
extern decltype(cuMemcpyDtoH_v2) cuMemcpyDtoH_v2_ptds;
extern decltype(cuMemcpyDtoD_v2) cuMemcpyDtoD_v2_ptds;
extern decltype(cuMemcpy2D_v2) cuMemcpy2D_v2_ptds;
extern decltype(cuMemcpy2DUnaligned_v2) cuMemcpy2DUnaligned_v2_ptds;
extern decltype(cuMemcpy2DAsync_v2) cuMemcpy2DAsync_v2_ptsz;
extern decltype(cuMemcpyPeerAsync) cuMemcpyPeerAsync_ptsz;
extern decltype(cuMemcpyAsync) cuMemcpyAsync_ptsz;
extern decltype(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
extern decltype(cuMemcpyDtoHAsync_v2) cuMemcpyDtoHAsync_v2_ptsz;
extern decltype(cuMemcpyDtoDAsync_v2) cuMemcpyDtoDAsync_v2_ptsz;
#if CUDA_VERSION >= 12080
extern decltype(cuMemcpyBatchAsync) cuMemcpyBatchAsync_ptsz;
extern decltype(cuMemcpy3DBatchAsync) cuMemcpy3DBatchAsync_ptsz;
#endif
#if CUDA_VERSION >= 13000
extern decltype(cuMemcpyBatchAsync_v2) cuMemcpyBatchAsync_v2_ptsz;
extern decltype(cuMemcpy3DBatchAsync_v2) cuMemcpy3DBatchAsync_v2_ptsz;
#endif
extern decltype(cuMemsetD8_v2) cuMemsetD8_v2_ptds;
extern decltype(cuMemsetD16_v2) cuMemsetD16_v2_ptds;
extern decltype(cuMemsetD32_v2) cuMemsetD32_v2_ptds;
extern decltype(cuMemsetD8Async) cuMemsetD8Async_ptsz;
extern decltype(cuMemsetD16Async) cuMemsetD16Async_ptsz;
extern decltype(cuMemsetD32Async) cuMemsetD32Async_ptsz;
extern decltype(cuStreamSynchronize) cuStreamSynchronize_ptsz;
extern decltype(cuStreamQuery) cuStreamQuery_ptsz;
extern decltype(cuStreamGetFlags) cuStreamGetFlags_ptsz;
extern decltype(cuStreamGetPriority) cuStreamGetPriority_ptsz;
extern decltype(cuStreamGetId) cuStreamGetId_ptsz;
extern decltype(cuStreamGetCtx) cuStreamGetCtx_ptsz;
extern decltype(cuStreamWaitEvent) cuStreamWaitEvent_ptsz;
extern decltype(cuLaunchHostFunc) cuLaunchHostFunc_ptsz;
extern decltype(cuStreamAddCallback) cuStreamAddCallback_ptsz;
extern decltype(cuEventRecord) cuEventRecord_ptsz;
extern decltype(cuEventRecordWithFlags) cuEventRecordWithFlags_ptsz;
extern decltype(cuStreamBeginCapture_v2) cuStreamBeginCapture_v2_ptsz;
#if CUDA_VERSION >= 12030
extern decltype(cuStreamBeginCaptureToGraph) cuStreamBeginCaptureToGraph_ptsz;
#endif
extern decltype(cuStreamEndCapture) cuStreamEndCapture_ptsz;
extern decltype(cuStreamIsCapturing) cuStreamIsCapturing_ptsz;
extern decltype(cuStreamGetCaptureInfo_v2) cuStreamGetCaptureInfo_v2_ptsz;
#if CUDA_VERSION >= 12030
extern decltype(cuStreamGetCaptureInfo_v3) cuStreamGetCaptureInfo_v3_ptsz;
#endif
extern decltype(cuGraphLaunch) cuGraphLaunch_ptsz;
extern decltype(cuLaunchKernel) cuLaunchKernel_ptsz;
extern decltype(cuLaunchKernelEx) cuLaunchKernelEx_ptsz;
extern decltype(cuLaunchCooperativeKernel) cuLaunchCooperativeKernel_ptsz;
extern decltype(cuMemAllocAsync) cuMemAllocAsync_ptsz;
extern decltype(cuMemFreeAsync) cuMemFreeAsync_ptsz;
extern decltype(cuMemAllocFromPoolAsync) cuMemAllocFromPoolAsync_ptsz;

}  // extern "C"

namespace weir::standin {
namespace {

/// The version at which <cudaTypedefs.h> has the per-thread form of `base` as of `since`.
int per_thread_version(std::string_view base, int since) {
  int first = INT_MAX;
#define PLAIN(name, version)
#define PER_THREAD(name, version, suffix) \
  if (base == #name && version >= since) first = std::min(first, version);
#include "typedefs.inc"
#undef PLAIN
#undef PER_THREAD
  return first;
}

template <typename F>
Entry entry(std::string_view name, int since, F* function, F* per_thread = nullptr) {
  return {name, since, reinterpret_cast<void*>(function), reinterpret_cast<void*>(per_thread),
          per_thread != nullptr ? per_thread_version(name, since) : 0};
}

}  // namespace

std::span<const Entry> entries() {
  static const std::array kEntries {
    entry("cuInit", 2000, &cuInit), entry("cuDriverGetVersion", 2020, &cuDriverGetVersion),
        entry("cuDeviceGet", 2000, &cuDeviceGet),
        entry("cuDeviceGetCount", 2000, &cuDeviceGetCount),
        entry("cuDeviceGetName", 2000, &cuDeviceGetName),
        entry("cuDeviceGetPCIBusId", 4010, &cuDeviceGetPCIBusId),
        entry("cuDeviceGetUuid", 11040, &cuDeviceGetUuid_v2),
        entry("cuDeviceGetAttribute", 2000, &cuDeviceGetAttribute),
        entry("cuDeviceTotalMem", 3020, &cuDeviceTotalMem_v2),
        entry("cuDevicePrimaryCtxRetain", 7000, &cuDevicePrimaryCtxRetain),
        entry("cuDevicePrimaryCtxRelease", 7000, &cuDevicePrimaryCtxRelease),
        entry("cuDevicePrimaryCtxReset", 7000, &cuDevicePrimaryCtxReset),
        entry("cuDevicePrimaryCtxRelease", 11000, &cuDevicePrimaryCtxRelease_v2),
        entry("cuDevicePrimaryCtxReset", 11000, &cuDevicePrimaryCtxReset_v2),
        entry("cuDevicePrimaryCtxSetFlags", 11000, &cuDevicePrimaryCtxSetFlags_v2),
        entry("cuDevicePrimaryCtxGetState", 7000, &cuDevicePrimaryCtxGetState),
        entry("cuCtxCreate", 3020, &cuCtxCreate_v2),
#if CUDA_VERSION >= 13000
        entry("cuCtxCreate", 12050, &cuCtxCreate_v4),
#endif
        entry("cuCtxDestroy", 4000, &cuCtxDestroy_v2),
        entry("cuCtxSetCurrent", 4000, &cuCtxSetCurrent),
        entry("cuCtxGetCurrent", 4000, &cuCtxGetCurrent),
        entry("cuCtxPushCurrent", 4000, &cuCtxPushCurrent_v2),
        entry("cuCtxPopCurrent", 4000, &cuCtxPopCurrent_v2),
        entry("cuCtxGetDevice", 2000, &cuCtxGetDevice), entry("cuCtxGetId", 12000, &cuCtxGetId),
        entry("cuCtxEnablePeerAccess", 4000, &cuCtxEnablePeerAccess),
        entry("cuCtxDisablePeerAccess", 4000, &cuCtxDisablePeerAccess),
        entry("cuDeviceCanAccessPeer", 4000, &cuDeviceCanAccessPeer),
        entry("cuCtxGetStreamPriorityRange", 5050, &cuCtxGetStreamPriorityRange),
        entry("cuCtxSynchronize", 2000, &cuCtxSynchronize),
        entry("cuMemGetInfo", 3020, &cuMemGetInfo_v2), entry("cuMemAlloc", 3020, &cuMemAlloc_v2),
        entry("cuMemAllocPitch", 3020, &cuMemAllocPitch_v2),
        entry("cuMemAllocManaged", 6000, &cuMemAllocManaged),
        entry("cuMemFree", 3020, &cuMemFree_v2), entry("cuMemAdvise", 8000, &cuMemAdvise),
#if CUDA_VERSION >= 12020
        entry("cuMemAdvise", 12020, &cuMemAdvise_v2),
#endif
        entry("cuIpcGetMemHandle", 4010, &cuIpcGetMemHandle),
        entry("cuIpcOpenMemHandle", 11000, &cuIpcOpenMemHandle_v2),
        entry("cuIpcCloseMemHandle", 4010, &cuIpcCloseMemHandle),
        entry("cuIpcGetEventHandle", 4010, &cuIpcGetEventHandle),
        entry("cuIpcOpenEventHandle", 4010, &cuIpcOpenEventHandle),
        entry("cuArrayCreate", 3020, &cuArrayCreate_v2),
        entry("cuArray3DCreate", 3020, &cuArray3DCreate_v2),
        entry("cuArrayDestroy", 2000, &cuArrayDestroy),
        entry("cuMipmappedArrayCreate", 5000, &cuMipmappedArrayCreate),
        entry("cuMipmappedArrayDestroy", 5000, &cuMipmappedArrayDestroy),
        entry("cuMemGetAddressRange", 3020, &cuMemGetAddressRange_v2),
        entry("cuMemHostAlloc", 2020, &cuMemHostAlloc),
        entry("cuMemAllocHost", 3020, &cuMemAllocHost_v2),
        entry("cuMemFreeHost", 2000, &cuMemFreeHost),
        entry("cuMemHostRegister", 6050, &cuMemHostRegister_v2),
        entry("cuMemHostUnregister", 4000, &cuMemHostUnregister),
        entry("cuMemHostGetDevicePointer", 3020, &cuMemHostGetDevicePointer_v2),
        entry("cuMemHostGetFlags", 2030, &cuMemHostGetFlags),
        entry("cuPointerGetAttribute", 4000, &cuPointerGetAttribute),
        entry("cuPointerGetAttributes", 7000, &cuPointerGetAttributes),
        entry("cuMemcpy", 4000, &cuMemcpy, &cuMemcpy_ptds),
        entry("cuMemcpyHtoD", 3020, &cuMemcpyHtoD_v2, &cuMemcpyHtoD_v2_ptds),
        entry("cuMemcpyDtoH", 3020, &cuMemcpyDtoH_v2, &cuMemcpyDtoH_v2_ptds),
        entry("cuMemcpyDtoD", 3020, &cuMemcpyDtoD_v2, &cuMemcpyDtoD_v2_ptds),
        entry("cuMemcpy2D", 3020, &cuMemcpy2D_v2, &cuMemcpy2D_v2_ptds),
        entry("cuMemcpy2DUnaligned", 3020, &cuMemcpy2DUnaligned_v2, &cuMemcpy2DUnaligned_v2_ptds),
        entry("cuMemcpy2DAsync", 3020, &cuMemcpy2DAsync_v2, &cuMemcpy2DAsync_v2_ptsz),
        entry("cuMemcpyPeerAsync", 4000, &cuMemcpyPeerAsync, &cuMemcpyPeerAsync_ptsz),
        entry("cuMemcpyAsync", 4000, &cuMemcpyAsync, &cuMemcpyAsync_ptsz),
        entry("cuMemcpyHtoDAsync", 3020, &cuMemcpyHtoDAsync_v2, &cuMemcpyHtoDAsync_v2_ptsz),
        entry("cuMemcpyDtoHAsync", 3020, &cuMemcpyDtoHAsync_v2, &cuMemcpyDtoHAsync_v2_ptsz),
        entry("cuMemcpyDtoDAsync", 3020, &cuMemcpyDtoDAsync_v2, &cuMemcpyDtoDAsync_v2_ptsz),
#if CUDA_VERSION >= 12080
        entry("cuMemcpyBatchAsync", 12080, &cuMemcpyBatchAsync, &cuMemcpyBatchAsync_ptsz),
        entry("cuMemcpy3DBatchAsync", 12080, &cuMemcpy3DBatchAsync, &cuMemcpy3DBatchAsync_ptsz),
#endif
#if CUDA_VERSION >= 13000
        entry("cuMemcpyBatchAsync", 13000, &cuMemcpyBatchAsync_v2, &cuMemcpyBatchAsync_v2_ptsz),
        entry("cuMemcpy3DBatchAsync", 13000, &cuMemcpy3DBatchAsync_v2,
              &cuMemcpy3DBatchAsync_v2_ptsz),
#endif
        entry("cuMemsetD8", 3020, &cuMemsetD8_v2, &cuMemsetD8_v2_ptds),
        entry("cuMemsetD16", 3020, &cuMemsetD16_v2, &cuMemsetD16_v2_ptds),
        entry("cuMemsetD32", 3020, &cuMemsetD32_v2, &cuMemsetD32_v2_ptds),
        entry("cuMemsetD8Async", 3020, &cuMemsetD8Async, &cuMemsetD8Async_ptsz),
        entry("cuMemsetD16Async", 3020, &cuMemsetD16Async, &cuMemsetD16Async_ptsz),
        entry("cuMemsetD32Async", 3020, &cuMemsetD32Async, &cuMemsetD32Async_ptsz),
        entry("cuStreamCreate", 2000, &cuStreamCreate),
        entry("cuStreamCreateWithPriority", 5050, &cuStreamCreateWithPriority),
        entry("cuStreamDestroy", 4000, &cuStreamDestroy_v2),
        entry("cuStreamSynchronize", 2000, &cuStreamSynchronize, &cuStreamSynchronize_ptsz),
        entry("cuStreamQuery", 2000, &cuStreamQuery, &cuStreamQuery_ptsz),
        entry("cuStreamGetFlags", 5050, &cuStreamGetFlags, &cuStreamGetFlags_ptsz),
        entry("cuStreamGetPriority", 5050, &cuStreamGetPriority, &cuStreamGetPriority_ptsz),
        entry("cuStreamGetId", 12000, &cuStreamGetId, &cuStreamGetId_ptsz),
        entry("cuStreamGetCtx", 9020, &cuStreamGetCtx, &cuStreamGetCtx_ptsz),
        entry("cuStreamWaitEvent", 3020, &cuStreamWaitEvent, &cuStreamWaitEvent_ptsz),
        entry("cuLaunchHostFunc", 10000, &cuLaunchHostFunc, &cuLaunchHostFunc_ptsz),
        entry("cuStreamAddCallback", 5000, &cuStreamAddCallback, &cuStreamAddCallback_ptsz),
        entry("cuEventCreate", 2000, &cuEventCreate),
        entry("cuEventDestroy", 4000, &cuEventDestroy_v2),
        entry("cuEventRecord", 2000, &cuEventRecord, &cuEventRecord_ptsz),
        entry("cuEventRecordWithFlags", 11010, &cuEventRecordWithFlags,
              &cuEventRecordWithFlags_ptsz),
        entry("cuEventQuery", 2000, &cuEventQuery),
        entry("cuEventSynchronize", 2000, &cuEventSynchronize),
        entry("cuEventElapsedTime", 2000, &cuEventElapsedTime),
        entry("cuEventElapsedTime", 12080, &cuEventElapsedTime_v2),
        entry("cuStreamBeginCapture", 10010, &cuStreamBeginCapture_v2,
              &cuStreamBeginCapture_v2_ptsz),
#if CUDA_VERSION >= 12030
        entry("cuStreamBeginCaptureToGraph", 12030, &cuStreamBeginCaptureToGraph,
              &cuStreamBeginCaptureToGraph_ptsz),
#endif
        entry("cuStreamEndCapture", 10000, &cuStreamEndCapture, &cuStreamEndCapture_ptsz),
        entry("cuStreamIsCapturing", 10000, &cuStreamIsCapturing, &cuStreamIsCapturing_ptsz),
        entry("cuStreamGetCaptureInfo", 11030, &cuStreamGetCaptureInfo_v2,
              &cuStreamGetCaptureInfo_v2_ptsz),
#if CUDA_VERSION >= 12030
        entry("cuStreamGetCaptureInfo", 12030, &cuStreamGetCaptureInfo_v3,
              &cuStreamGetCaptureInfo_v3_ptsz),
#endif
        entry("cuUserObjectCreate", 11030, &cuUserObjectCreate),
        entry("cuUserObjectRelease", 11030, &cuUserObjectRelease),
        entry("cuGraphRetainUserObject", 11030, &cuGraphRetainUserObject),
        entry("cuThreadExchangeStreamCaptureMode", 10010, &cuThreadExchangeStreamCaptureMode),
        entry("cuGraphCreate", 10000, &cuGraphCreate),
        entry("cuGraphAddMemAllocNode", 11040, &cuGraphAddMemAllocNode),
        entry("cuGraphAddMemFreeNode", 11040, &cuGraphAddMemFreeNode),
#if CUDA_VERSION >= 12020
        entry("cuGraphAddNode", 12020, &cuGraphAddNode),
#endif
#if CUDA_VERSION >= 12030
        entry("cuGraphAddNode", 12030, &cuGraphAddNode_v2),
#endif
        entry("cuDeviceGetGraphMemAttribute", 11040, &cuDeviceGetGraphMemAttribute),
        entry("cuDeviceSetGraphMemAttribute", 11040, &cuDeviceSetGraphMemAttribute),
        entry("cuDeviceGraphMemTrim", 11040, &cuDeviceGraphMemTrim),
        entry("cuGraphInstantiateWithFlags", 11040, &cuGraphInstantiateWithFlags),
        entry("cuGraphLaunch", 10000, &cuGraphLaunch, &cuGraphLaunch_ptsz),
        entry("cuGraphGetNodes", 10000, &cuGraphGetNodes),
        entry("cuGraphDestroy", 10000, &cuGraphDestroy),
        entry("cuGraphExecDestroy", 10000, &cuGraphExecDestroy),
        entry("cuLibraryLoadData", 12000, &cuLibraryLoadData),
        entry("cuLibraryLoadFromFile", 12000, &cuLibraryLoadFromFile),
        entry("cuLibraryUnload", 12000, &cuLibraryUnload),
        entry("cuModuleLoad", 2000, &cuModuleLoad),
        entry("cuModuleLoadData", 2000, &cuModuleLoadData),
        entry("cuModuleLoadDataEx", 2010, &cuModuleLoadDataEx),
        entry("cuModuleLoadFatBinary", 2000, &cuModuleLoadFatBinary),
        entry("cuModuleUnload", 2000, &cuModuleUnload),
        entry("cuModuleGetFunction", 2000, &cuModuleGetFunction),
        entry("cuLibraryGetKernel", 12000, &cuLibraryGetKernel),
        entry("cuKernelGetFunction", 12000, &cuKernelGetFunction),
        entry("cuFuncGetAttribute", 2020, &cuFuncGetAttribute),
        entry("cuFuncSetAttribute", 9000, &cuFuncSetAttribute),
        entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050,
              &cuOccupancyMaxActiveBlocksPerMultiprocessor),
        entry("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000,
              &cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
        entry("cuLaunchKernel", 4000, &cuLaunchKernel, &cuLaunchKernel_ptsz),
        entry("cuLaunchKernelEx", 11060, &cuLaunchKernelEx, &cuLaunchKernelEx_ptsz),
        entry("cuLaunchCooperativeKernel", 9000, &cuLaunchCooperativeKernel,
              &cuLaunchCooperativeKernel_ptsz),
        entry("cuMemAllocAsync", 11020, &cuMemAllocAsync, &cuMemAllocAsync_ptsz),
        entry("cuMemFreeAsync", 11020, &cuMemFreeAsync, &cuMemFreeAsync_ptsz),
        entry("cuMemAllocFromPoolAsync", 11020, &cuMemAllocFromPoolAsync,
              &cuMemAllocFromPoolAsync_ptsz),
        entry("cuMemPoolCreate", 11020, &cuMemPoolCreate),
        entry("cuMemPoolDestroy", 11020, &cuMemPoolDestroy),
        entry("cuMemPoolTrimTo", 11020, &cuMemPoolTrimTo),
        entry("cuMemPoolSetAttribute", 11020, &cuMemPoolSetAttribute),
        entry("cuMemPoolGetAttribute", 11020, &cuMemPoolGetAttribute),
        entry("cuMemPoolSetAccess", 11020, &cuMemPoolSetAccess),
        entry("cuMemPoolGetAccess", 11020, &cuMemPoolGetAccess),
#if CUDA_VERSION >= 13000
        entry("cuMemGetDefaultMemPool", 13000, &cuMemGetDefaultMemPool),
        entry("cuMemGetMemPool", 13000, &cuMemGetMemPool),
        entry("cuMemSetMemPool", 13000, &cuMemSetMemPool),
#endif
        entry("cuDeviceGetDefaultMemPool", 11020, &cuDeviceGetDefaultMemPool),
        entry("cuDeviceGetMemPool", 11020, &cuDeviceGetMemPool),
        entry("cuDeviceSetMemPool", 11020, &cuDeviceSetMemPool),
        entry("cuMemAddressReserve", 10020, &cuMemAddressReserve),
        entry("cuMemAddressFree", 10020, &cuMemAddressFree),
        entry("cuMemCreate", 10020, &cuMemCreate), entry("cuMemRelease", 10020, &cuMemRelease),
        entry("cuMemExportToShareableHandle", 10020, &cuMemExportToShareableHandle),
        entry("cuMemImportFromShareableHandle", 10020, &cuMemImportFromShareableHandle),
        entry("cuMemRetainAllocationHandle", 11000, &cuMemRetainAllocationHandle),
        entry("cuMemMap", 10020, &cuMemMap), entry("cuMemUnmap", 10020, &cuMemUnmap),
        entry("cuMemSetAccess", 10020, &cuMemSetAccess),
        entry("cuMemGetAllocationGranularity", 10020, &cuMemGetAllocationGranularity),
        entry("cuGetErrorName", 6000, &cuGetErrorName),
        entry("cuGetErrorString", 6000, &cuGetErrorString),
        entry("cuGetProcAddress", 11030, &cuGetProcAddress),
        entry("cuGetProcAddress", 12000, &cuGetProcAddress_v2),
        entry("weir_standin_function_of", 0, &weir_standin_function_of),
        entry("weir_standin_refuse_runtime", 0, &weir_standin_refuse_runtime),
  };
  return kEntries;
}

}  // namespace weir::standin
