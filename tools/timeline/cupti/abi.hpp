#pragma once

// The part of CUPTI's binary interface that Weir uses, declared from its documentation: numbers,
// the first fields of each record, and functions. So this room builds without toolkit headers, and
// one build reads CUPTI 11 to 13: records grow at their end, and known fields keep their offsets.
// tests/timeline/cupti/abi_test_cuda.cpp compares all of this with the toolkit's headers.

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::timeline::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kMultipleSubscribers = 39;
inline constexpr Result kUnknownError = 999;

enum class Kind : std::uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpyPeer = 22,  // CUPTI's MEMCPY2
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory = 49,  // CUPTI's MEMORY2
  kMemoryPool = 50,
};

enum class Attribute : std::uint32_t {
  kDeviceBufferSize = 0,
  kZeroedBuffer = 5,
  kDeviceBufferPreallocate = 6,
  kAllocationSource = 14,  // from 13.3 on, like the next two
  kThreadIdType = 21,
  kTimestampCallback = 22,
};

inline constexpr std::uint32_t kSystemThreadIds = 1;
inline constexpr std::uint32_t kFlushForced = 1;
inline constexpr std::uint32_t kExternalCustom0 = 3;
inline constexpr std::uint32_t kDomainDriver = 1;
inline constexpr std::uint32_t kDomainRuntime = 2;
inline constexpr std::uint32_t kNoStream = 0xFFFFFFFF;

/// The first fields of the records.
struct KernelRecord {
  Kind kind;
  std::uint8_t unused0[12];
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint8_t unused1[40];
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
};
struct CopyRecord {
  Kind kind;
  std::uint8_t copy_kind;
  std::uint8_t unused0[3];
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};
struct PeerCopyRecord {
  Kind kind;
  std::uint8_t copy_kind;
  std::uint8_t unused0[3];
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t source_device;
  std::uint32_t source_context;
  std::uint32_t target_device;
  std::uint32_t target_context;
  std::uint32_t correlation;
};
struct SetRecord {
  Kind kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};
struct SyncRecord {
  Kind kind;
  std::uint32_t type;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlation;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t event;
};
struct MemoryRecord {
  Kind kind;
  std::uint32_t operation;  // 1: allocated, 2: released
  std::uint32_t memory_kind;
  std::uint32_t correlation;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t timestamp;
  std::uint64_t program_counter;
  std::uint32_t process;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  const char* name;
  std::uint8_t unused0[48];
  const char* source;  // the requesting library; null in older, shorter records
};
struct PoolRecord {
  Kind kind;
  std::uint32_t operation;
  std::uint32_t pool_type;
  std::uint32_t correlation;
  std::uint32_t process;
  std::uint32_t device;
  std::uint64_t least_kept;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t threshold;
  std::uint64_t timestamp;
  std::uint64_t utilized;
};
struct CallRecord {
  Kind kind;
  std::uint32_t function;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t correlation;
  std::uint32_t result;
};
struct OverheadRecord {
  Kind kind;
  std::uint32_t overhead;
  std::uint32_t object;  // 2: a thread
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t unused0;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlation;  // zero in older, shorter records
};
struct ExternalRecord {
  Kind kind;
  std::uint32_t external_kind;
  std::uint64_t external_id;
  std::uint32_t correlation;
};

/// Parameters of cuptiSubscribe_v2. CUPTI infers from `size` which fields exist.
struct SubscriberParams {
  std::size_t size;
  const char* name;
  char* old_subscriber;  // at least 64 bytes
  std::size_t old_subscriber_size;
  std::uint8_t allow_multiple;  // from 13.2 on
  std::uint8_t unused[7];
};
inline constexpr std::size_t kOlderSubscriberParams = offsetof(SubscriberParams, allow_multiple);

using Subscriber = void*;
using Context = void*;
using Callback = void (*)(void* user, std::uint32_t domain, std::uint32_t function,
                          const void* data);
using Timestamp = std::uint64_t (*)();
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most);
using BufferCompleted = void (*)(Context context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid);
using BufferRequested2 = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most,
                                  void* info);
using BufferCompleted2 = void (*)(std::uint8_t* buffer, std::size_t size, std::size_t valid,
                                  void* info);

/// Functions of both generations.
struct CommonCalls {
  Result (*get_result_string)(Result, const char**) = nullptr;
  Result (*get_callback_name)(std::uint32_t domain, std::uint32_t function, const char**) = nullptr;
  Result (*flush_all)(std::uint32_t flag) = nullptr;
  Result (*unsubscribe)(Subscriber) = nullptr;
  Result (*subscribe2)(Subscriber*, Callback, void* user, SubscriberParams*) = nullptr;
};

/// Functions that both generations have. Those of the newer one take their subscriber first.
template <typename... First>
struct GenerationCalls {
  Result (*get_attribute)(First..., Attribute, std::size_t*, void*) = nullptr;
  Result (*set_attribute)(First..., Attribute, std::size_t*, void*) = nullptr;
  Result (*enable_driver_call)(First..., std::uint32_t function, std::uint8_t) = nullptr;
  Result (*enable_runtime_call)(First..., std::uint32_t function, std::uint8_t) = nullptr;
  Result (*next_record)(First..., std::uint8_t*, std::size_t, std::uint8_t**) = nullptr;
  Result (*dropped)(First..., Context, std::uint32_t stream, std::size_t*) = nullptr;
  Result (*push_external)(First..., std::uint32_t kind, std::uint64_t id) = nullptr;
  Result (*pop_external)(First..., std::uint32_t kind, std::uint64_t*) = nullptr;
};

/// Functions of the older generation: they apply to the process's one subscriber.
struct OlderCalls : GenerationCalls<> {
  Result (*subscribe)(Subscriber*, Callback, void* user) = nullptr;
  Result (*set_thread_id_type)(std::uint32_t) = nullptr;
  Result (*enable_allocation_source)(std::uint8_t) = nullptr;
  Result (*register_timestamp)(Timestamp) = nullptr;
  Result (*register_callbacks)(BufferRequested, BufferCompleted) = nullptr;
  Result (*enable)(Kind) = nullptr;
  Result (*disable)(Kind) = nullptr;
};

/// Functions of the newer generation.
struct NewerCalls : GenerationCalls<Subscriber> {
  Result (*register_callbacks)(Subscriber, BufferRequested2, BufferCompleted2) = nullptr;
  Result (*enable)(Subscriber, Kind, void* config) = nullptr;
  Result (*disable)(Subscriber, Kind, void* config) = nullptr;
};

// The CUDA functions whose calls are recorded: those that start work, wait, or obtain memory. The
// others are called often and add no information. Numbers are CUPTI's ids.

inline constexpr auto kRuntimeCalls = std::to_array<std::uint32_t>({
    211, 214, 269, 270, 430, 431, 505, 506,            // cudaLaunchKernel, ...Cooperative, ...ExC
    311, 312,                                          // cudaGraphLaunch
    31,  32,  41,  44,  144, 145, 160, 161, 162,       // cudaMemcpy, 2D, Async, 3D, Peer
    163, 215, 216, 225, 228, 245, 246, 249, 250,       // the same
    39,  40,  47,  48,  223, 224, 231, 232,            // cudaMemcpyToSymbol, FromSymbol
    482, 483, 484, 485, 509, 510, 511, 512,            // cudaMemcpyBatchAsync
    554, 555, 556, 557,                                // cudaMemcpyWithAttributesAsync
    49,  50,  51,  52,  142, 143, 233, 234, 235,       // cudaMemset
    236, 243, 244,                                     // the same
    131, 137, 147, 165, 239, 247,                      // cuda...Synchronize, cudaStreamWaitEvent
    20,  22,  25,  26,  27,  206, 373, 374, 375, 376,  // cudaMalloc, cudaHostAlloc, cudaFree
    391, 392,
});

inline constexpr auto kDriverCalls = std::to_array<std::uint32_t>({
    307, 442, 477, 478, 652, 653,  // cuLaunchKernel, ...Cooperative, ...Ex
    514, 515,                      // cuGraphLaunch
    276, 277, 278, 279, 280, 281,  // cuMemcpyHtoD, DtoH, DtoD, ...Async
    397, 398, 399, 421, 422, 423,  // the same
    287, 289, 290, 291, 305, 306,  // cuMemcpy2D, 3D, cuMemcpy
    405, 407, 408, 418, 424, 425,  // the same
    318, 319, 320, 321, 409, 410,  // cuMemcpyPeer
    426, 427,                      // the same
    776, 777, 778, 779, 796, 797,  // cuMemcpyBatchAsync
    798, 799, 837, 838, 839, 840,  // the same, cuMemcpyWithAttributesAsync
    249, 250, 251, 252, 253, 254,  // cuMemset
    216, 218, 220, 222, 224, 226,  // cuMemset...Async
    411, 412, 413, 414, 415, 416,  // the same
    428, 429, 430, 431, 432, 433,  // the same
    17,  121, 126, 440, 800,       // cu...Synchronize
    295, 436,                      // cuStreamWaitEvent
    38,  39,  294, 371,            // cuMemFreeHost, cuMemHostAlloc, cuMemAllocHost, Managed
    243, 245, 549, 551, 552, 598,  // cuMemAlloc, cuMemFree, cuMemCreate, cuMemMap
    599, 600, 601, 611, 612,       // the same, cuMemAllocFromPoolAsync
});

}  // namespace weir::timeline::cupti
