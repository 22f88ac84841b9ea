#pragma once

// All that differs between PyTorch 2.4 and 2.15 in the interface of a CUDA allocator, and only
// here: what a version has, and how it declares a function that another declares differently. Found
// by comparing class CUDAAllocator and c10::DeviceAllocator of the wheels' headers.

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include <torch/csrc/api/include/torch/version.h>
#endif

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 4
#error "the plug is for PyTorch 2.4 and later of the second version"
#endif

#define WEIR_TORCH_FROM(minor) (TORCH_VERSION_MINOR >= (minor))

// Functions that a version added.
#define WEIR_TORCH_HAS_SHARING WEIR_TORCH_FROM(5)           // shareIpcHandle
#define WEIR_TORCH_HAS_ANNOTATIONS WEIR_TORCH_FROM(5)       // recordAnnotation
#define WEIR_TORCH_HAS_ENABLE WEIR_TORCH_FROM(6)            // enable, isEnabled, getMemoryFraction
#define WEIR_TORCH_HAS_USE_COUNT WEIR_TORCH_FROM(6)         // getPoolUseCount
#define WEIR_TORCH_HAS_COMPILE_CONTEXT WEIR_TORCH_FROM(8)   // pushCompileContext
#define WEIR_TORCH_HAS_USE_ON_OOM WEIR_TORCH_FROM(8)        // setUseOnOOM, createOrIncrefPool
#define WEIR_TORCH_HAS_DEVICE_ALLOCATOR WEIR_TORCH_FROM(9)  // recordStream(c10::Stream)
#define WEIR_TORCH_HAS_MEMORY_INFO WEIR_TORCH_FROM(10)      // getMemoryInfo
#define WEIR_TORCH_HAS_SEGMENT_SIZES WEIR_TORCH_FROM(10)    // getExpandableSegmentSizes
#define WEIR_TORCH_HAS_NO_SPLIT WEIR_TORCH_FROM(10)         // setNoSplit
#define WEIR_TORCH_HAS_USER_METADATA WEIR_TORCH_FROM(10)    // setUserMetadata
#define WEIR_TORCH_HAS_CONTEXT_OF WEIR_TORCH_FROM(12)       // getContextForPointer
#define WEIR_TORCH_HAS_REJECTIONS WEIR_TORCH_FROM(12)       // attachOomRejectionObserver
#define WEIR_TORCH_HAS_CAPTURE_MARKS WEIR_TORCH_FROM(13)    // markCaptureBegin
#define WEIR_TORCH_HAS_FIXED_ADDRESS WEIR_TORCH_FROM(13)    // allocateWithAddress
#define WEIR_TORCH_HAS_MEMORY_NOTES WEIR_TORCH_FROM(14)     // annotateMemory
#define WEIR_TORCH_HAS_SKIPPED_ACTIONS WEIR_TORCH_FROM(11)  // parseTraceEntryAction
// ensureExistsAndIncrefPool, which createOrIncrefPool replaced.
#define WEIR_TORCH_HAS_ENSURE_POOL (WEIR_TORCH_FROM(6) && !WEIR_TORCH_FROM(8))

// Functions with other parameters: WEIR_TORCH_X are the parameters as declared, WEIR_TORCH_X_PASSED
// what is passed on to native's function of the name.
#if WEIR_TORCH_FROM(8)
#define WEIR_TORCH_EMPTY_CACHE c10::cuda::MempoolId_t pool
#define WEIR_TORCH_EMPTY_CACHE_PASSED pool
#define WEIR_TORCH_IS_DEFAULT_POOL (pool == c10::cuda::MempoolId_t{0, 0})
#else
#define WEIR_TORCH_EMPTY_CACHE
#define WEIR_TORCH_EMPTY_CACHE_PASSED
#define WEIR_TORCH_IS_DEFAULT_POOL true
#endif

#if WEIR_TORCH_FROM(11)
#define WEIR_TORCH_SNAPSHOT c10::cuda::MempoolId_t pool, bool with_traces
#define WEIR_TORCH_SNAPSHOT_PASSED pool, with_traces
#elif WEIR_TORCH_FROM(8)
#define WEIR_TORCH_SNAPSHOT c10::cuda::MempoolId_t pool
#define WEIR_TORCH_SNAPSHOT_PASSED pool
#else
#define WEIR_TORCH_SNAPSHOT
#define WEIR_TORCH_SNAPSHOT_PASSED
#endif

#if WEIR_TORCH_FROM(11)
#define WEIR_TORCH_HISTORY_MORE , bool clear, const std::vector<std::string>&skipped
#define WEIR_TORCH_HISTORY_MORE_PASSED , clear, skipped
#elif WEIR_TORCH_FROM(8)
#define WEIR_TORCH_HISTORY_MORE , bool clear
#define WEIR_TORCH_HISTORY_MORE_PASSED , clear
#else
#define WEIR_TORCH_HISTORY_MORE
#define WEIR_TORCH_HISTORY_MORE_PASSED
#endif

#if WEIR_TORCH_FROM(11)
#define WEIR_TORCH_USE_ON_OOM_MORE , bool use
#define WEIR_TORCH_USE_ON_OOM_MORE_PASSED , use
#define WEIR_TORCH_POOL_ALLOCATOR std::shared_ptr<::c10::cuda::CUDACachingAllocator::CUDAAllocator>
#else
#define WEIR_TORCH_USE_ON_OOM_MORE
#define WEIR_TORCH_USE_ON_OOM_MORE_PASSED
#define WEIR_TORCH_POOL_ALLOCATOR ::c10::cuda::CUDACachingAllocator::CUDAAllocator*
#endif

// The first character of a handle of shared memory, which says how the rest is written
// (SHAREABLE_HANDLE_VERSION in c10/cuda/CUDACachingAllocator.cpp). Read from the wheels' libraries.
#if WEIR_TORCH_FROM(13)
#define WEIR_TORCH_HANDLE_VERSION 3
#elif WEIR_TORCH_FROM(8)
#define WEIR_TORCH_HANDLE_VERSION 2
#else
#define WEIR_TORCH_HANDLE_VERSION 1
#endif

// What an entry of a history has before its time.
#if WEIR_TORCH_FROM(8)
#define WEIR_TORCH_DEFAULT_POOL c10::cuda::MempoolId_t{0, 0},
#else
#define WEIR_TORCH_DEFAULT_POOL
#endif

namespace weir::torch_plug {

namespace native_api = ::c10::cuda::CUDACachingAllocator;

using NativeAllocator = native_api::CUDAAllocator;
using MempoolId = c10::cuda::MempoolId_t;
#if WEIR_TORCH_FROM(5)
using DeviceStats = c10::CachingDeviceAllocator::DeviceStats;
using StatArray = c10::CachingDeviceAllocator::StatArray;
#else
using DeviceStats = native_api::DeviceStats;
using StatArray = native_api::StatArray;
#endif

}  // namespace weir::torch_plug
