// The declarations of abi.hpp match the toolkit's headers.

#include <cupti.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "tools/timeline/cupti/abi.hpp"

namespace weir::timeline::cupti {
namespace {

#if CUPTI_API_VERSION < 130000
#error "compares with the headers of CUDA 13"
#endif

#define SAME(ours, field, theirs, name)                            \
  static_assert(offsetof(ours, field) == offsetof(theirs, name) && \
                sizeof(ours::field) == sizeof(theirs::name))

// What all work of a stream has.
#define SAME_WORK(ours, theirs)           \
  SAME(ours, kind, theirs, kind);         \
  SAME(ours, start, theirs, start);       \
  SAME(ours, end, theirs, end);           \
  SAME(ours, device, theirs, deviceId);   \
  SAME(ours, context, theirs, contextId); \
  SAME(ours, stream, theirs, streamId);   \
  SAME(ours, correlation, theirs, correlationId)

// The newest and the oldest that these headers call by their own names.
#define SAME_KERNEL(theirs)        \
  SAME_WORK(KernelRecord, theirs); \
  SAME(KernelRecord, name, theirs, name)
SAME_KERNEL(CUpti_ActivityKernel10);
SAME_KERNEL(CUpti_ActivityKernel9);
SAME_KERNEL(CUpti_ActivityKernel5);

#define SAME_COPY(ours, theirs)            \
  SAME_WORK(ours, theirs);                 \
  SAME(ours, copy_kind, theirs, copyKind); \
  SAME(ours, bytes, theirs, bytes)
SAME_COPY(CopyRecord, CUpti_ActivityMemcpy6);
SAME_COPY(CopyRecord, CUpti_ActivityMemcpy4);
SAME_COPY(PeerCopyRecord, CUpti_ActivityMemcpyPtoP4);
SAME_COPY(PeerCopyRecord, CUpti_ActivityMemcpyPtoP3);

#define SAME_SET(theirs)        \
  SAME_WORK(SetRecord, theirs); \
  SAME(SetRecord, bytes, theirs, bytes)
SAME_SET(CUpti_ActivityMemset4);
SAME_SET(CUpti_ActivityMemset3);

#define SAME_SYNC(theirs)                               \
  SAME(SyncRecord, type, theirs, type);                 \
  SAME(SyncRecord, start, theirs, start);               \
  SAME(SyncRecord, end, theirs, end);                   \
  SAME(SyncRecord, correlation, theirs, correlationId); \
  SAME(SyncRecord, context, theirs, contextId);         \
  SAME(SyncRecord, stream, theirs, streamId)
SAME_SYNC(CUpti_ActivitySynchronization2);
SAME_SYNC(CUpti_ActivitySynchronization);

#define SAME_MEMORY(theirs)                                   \
  SAME(MemoryRecord, operation, theirs, memoryOperationType); \
  SAME(MemoryRecord, memory_kind, theirs, memoryKind);        \
  SAME(MemoryRecord, correlation, theirs, correlationId);     \
  SAME(MemoryRecord, address, theirs, address);               \
  SAME(MemoryRecord, bytes, theirs, bytes);                   \
  SAME(MemoryRecord, timestamp, theirs, timestamp);           \
  SAME(MemoryRecord, device, theirs, deviceId);               \
  SAME(MemoryRecord, stream, theirs, streamId)
SAME_MEMORY(CUpti_ActivityMemory4);
SAME_MEMORY(CUpti_ActivityMemory3);
SAME(MemoryRecord, source, CUpti_ActivityMemory4, source);
static_assert(sizeof(CUpti_ActivityMemory3) <= offsetof(MemoryRecord, source));

#define SAME_POOL(theirs)                                       \
  SAME(PoolRecord, operation, theirs, memoryPoolOperationType); \
  SAME(PoolRecord, correlation, theirs, correlationId);         \
  SAME(PoolRecord, device, theirs, deviceId);                   \
  SAME(PoolRecord, address, theirs, address);                   \
  SAME(PoolRecord, size, theirs, size);                         \
  SAME(PoolRecord, timestamp, theirs, timestamp)
SAME_POOL(CUpti_ActivityMemoryPool3);
SAME_POOL(CUpti_ActivityMemoryPool2);
SAME(PoolRecord, utilized, CUpti_ActivityMemoryPool3, utilizedSize);

SAME(CallRecord, function, CUpti_ActivityAPI, cbid);
SAME(CallRecord, start, CUpti_ActivityAPI, start);
SAME(CallRecord, end, CUpti_ActivityAPI, end);
SAME(CallRecord, thread, CUpti_ActivityAPI, threadId);
SAME(CallRecord, correlation, CUpti_ActivityAPI, correlationId);

SAME(OverheadRecord, overhead, CUpti_ActivityOverhead3, overheadKind);
SAME(OverheadRecord, object, CUpti_ActivityOverhead3, objectKind);
SAME(OverheadRecord, thread, CUpti_ActivityOverhead3, objectId.pt.threadId);
SAME(OverheadRecord, start, CUpti_ActivityOverhead3, start);
SAME(OverheadRecord, end, CUpti_ActivityOverhead3, end);
SAME(OverheadRecord, correlation, CUpti_ActivityOverhead3, correlationId);

SAME(ExternalRecord, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME(ExternalRecord, external_id, CUpti_ActivityExternalCorrelation, externalId);
SAME(ExternalRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);

SAME(SubscriberParams, name, CUpti_SubscriberParams, subscriberName);
SAME(SubscriberParams, old_subscriber, CUpti_SubscriberParams, oldSubscriberName);
SAME(SubscriberParams, old_subscriber_size, CUpti_SubscriberParams, oldSubscriberSize);

#define SAME_NUMBER(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
SAME_NUMBER(Kind::kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_NUMBER(Kind::kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_NUMBER(Kind::kDriver, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_NUMBER(Kind::kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_NUMBER(Kind::kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_NUMBER(Kind::kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME_NUMBER(Kind::kMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_NUMBER(Kind::kSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME_NUMBER(Kind::kExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME_NUMBER(Kind::kMemory, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME_NUMBER(Kind::kMemoryPool, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
SAME_NUMBER(Attribute::kDeviceBufferSize, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
SAME_NUMBER(Attribute::kZeroedBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME_NUMBER(Attribute::kDeviceBufferPreallocate,
            CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE);
SAME_NUMBER(kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_NUMBER(kUnknownError, CUPTI_ERROR_UNKNOWN);
SAME_NUMBER(kSystemThreadIds, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME_NUMBER(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_NUMBER(kExternalCustom0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
SAME_NUMBER(kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_NUMBER(kDomainRuntime, CUPTI_CB_DOMAIN_RUNTIME_API);

template <typename Numbers>
bool has(const Numbers& numbers, int number) {
  return std::ranges::count(numbers, static_cast<std::uint32_t>(number)) == 1;
}

TEST(CuptiAbi, TheFunctionsThatAreRecordedHaveTheNumbersOfTheToolkit) {
  for (const int launch : {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
                           CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2D_ptds_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3D_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3D_ptds_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeer_v4000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DPeerAsync_ptsz_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbol_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbolAsync_ptsz_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v13000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemset2D_ptds_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemset3DAsync_ptsz_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_ptsz_v7000,
                           CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020,
                           CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_v11020}) {
    EXPECT_TRUE(has(kRuntimeCalls, launch)) << launch;
  }
  for (const int launch : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                           CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                           CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                           CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
                           CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                           CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemCreate,
                           CUPTI_DRIVER_TRACE_CBID_cuMemMap,
                           CUPTI_DRIVER_TRACE_CBID_cuMemUnmap,
                           CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
                           CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpy3D_v2_ptds,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
                           CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
                           CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async_ptsz,
                           CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
                           CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync,
                           CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,
                           CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent,
                           CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize_v2,
                           CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
                           CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                           CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize}) {
    EXPECT_TRUE(has(kDriverCalls, launch)) << launch;
  }
}

}  // namespace
}  // namespace weir::timeline::cupti
