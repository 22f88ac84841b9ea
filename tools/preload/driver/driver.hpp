#pragma once

// The driver itself: the functions behind the hooks, and those that the swap-in calls. Null if the
// driver is too old to have one.

#include <cuda.h>

// <cuda.h> maps some names to their latest version, and does not declare the forms for the other
// default stream.
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGetProcAddress
#undef cuGraphAddNode
#undef cuMemAdvise
#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync
extern "C" {
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                        unsigned int flags, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count);
#if CUDA_VERSION >= 13000
CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device);
#endif
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
#if CUDA_VERSION >= 12020
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* parameters);
#endif
#if CUDA_VERSION >= 12080
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                            size_t* failed, CUstream stream);
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed,
                              unsigned long long flags, CUstream stream);
#endif
#define HOOK(base, since, symbol, action, what)
#define HOOK_STREAM(base, since, symbol, action, what) extern decltype(symbol) symbol##_ptsz;
#define HOOK_PTDS(base, since, symbol, action, what) extern decltype(symbol) symbol##_ptds;
#include "tools/preload/driver/hooks.inc"
}

namespace weir::preload {

struct Driver {
#define HOOK(base, since, symbol, action, what) decltype(&::symbol) symbol = nullptr;
#define HOOK_STREAM(base, since, symbol, action, what) \
  decltype(&::symbol) symbol = nullptr;                \
  decltype(&::symbol) symbol##_ptsz = nullptr;
#define HOOK_PTDS(base, since, symbol, action, what) decltype(&::symbol) symbol##_ptds = nullptr;
#include "tools/preload/driver/hooks.inc"
#define CALL(symbol) decltype(&::symbol) symbol = nullptr;
#include "tools/preload/driver/driver_calls.inc"
};

/// Returns the program's driver; null before it is loaded, or if there is none. Thread-safe.
[[nodiscard]] const Driver* driver() noexcept;

/// Returns the next dlsym after ours, linked or preloaded.
[[nodiscard]] void* real_dlsym_address() noexcept;
/// Calls that dlsym for `library`.
[[nodiscard]] void* real_dlsym(void* library, const char* name) noexcept;

}  // namespace weir::preload
