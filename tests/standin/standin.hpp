#pragma once

// Controls and queries of the stand-in CUDA driver. A program gets these functions by linking
// weir_standin_cuda (see docs/standin.md). Calls are named by the base name of the driver function:
// "cuMemAlloc" for cuMemAlloc_v2, "cuStreamWaitEvent" for its _ptsz variant too. All functions are
// thread-safe, also while a stream is held. In a forked child they do nothing and return zero.

#include <cuda.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

extern "C" {

// ---- Devices. Each setting holds from the call on; the environment gives the initial ones.

/// Number of devices, at most 8. WEIR_STANDIN_DEVICES, or 1.
void weir_standin_set_devices(int count);
/// Bytes of memory of each device. WEIR_STANDIN_MEMORY (a number, or one with K, M or G for powers
/// of 1024), or 1 GiB. Allocated memory stays allocated.
void weir_standin_set_memory(std::size_t bytes);
/// Bytes that a context takes of its device while it exists. WEIR_STANDIN_CONTEXT_MEMORY, or none.
/// Existing contexts do not change until weir_standin_reset.
void weir_standin_set_context_memory(std::size_t bytes);
/// Bytes that a module or a library takes of its context's device. WEIR_STANDIN_MODULE_MEMORY, or
/// none.
void weir_standin_set_module_memory(std::size_t bytes);
/// Loads of modules and libraries wait inside the driver until `count` of them are there. After 20
/// seconds they return CUDA_ERROR_LAUNCH_TIMEOUT. 0: no wait.
void weir_standin_set_loads_meet(int count);
/// Whether the devices have virtual memory management (cuMemCreate); by default they do.
void weir_standin_set_pages_supported(int supported);
/// Whether a device and the host may use managed memory at once. It may then exceed the device's
/// memory, takes none of it here, and cuMemAdvise can place it. WEIR_STANDIN_CONCURRENT_MANAGED (1
/// for yes), or no.
void weir_standin_set_concurrent_managed(int on);
/// Whether cuMemAlloc and cuMemCreate give addresses without memory: a device of any size then
/// costs the host nothing, and an access ends the program. Existing allocations do not change.
/// WEIR_STANDIN_ADDRESSES_ONLY (1 for yes), or no.
void weir_standin_set_addresses_only(int on);
/// Whether reserved addresses without a page count as device memory, except that
/// CU_POINTER_ATTRIBUTE_MAPPED is 0; work that touches them ends the program.
/// WEIR_STANDIN_RESERVED_IS_DEVICE (1 for yes), or no: the driver does not know them.
void weir_standin_set_reserved_is_device(int on);
/// Whether a launch of a kernel, a graph, a set or a copy returns only when its stream has run it.
/// WEIR_STANDIN_LAUNCHES_BLOCK (1 for yes), or no.
void weir_standin_set_launches_block(int on);
/// Whether host functions and callbacks of all streams run one at a time.
/// WEIR_STANDIN_HOST_FUNCTIONS_SERIAL (1 for yes), or no.
void weir_standin_set_host_functions_serial(int on);
/// Whether pages may be made and mapped during a capture. WEIR_STANDIN_PAGES_IN_CAPTURES (1 for
/// yes), or no.
void weir_standin_set_pages_in_captures(int on);
/// Whether another process can open handles of new memory of cuMemAlloc. WEIR_STANDIN_SHAREABLE (1
/// for yes), or no.
void weir_standin_set_shareable(int on);
/// Result of cuDriverGetVersion. WEIR_STANDIN_DRIVER_VERSION, or the toolkit's.
void weir_standin_set_driver_version(int version);
/// Ends holds, waits for all work, forgets every stream, event and allocation, removes faults and
/// delays, and clears counters. Settings return to the environment's; kernels stay registered.
void weir_standin_reset(void);

// ---- Faults. A later call for the same name adds to the earlier ones.

enum WeirStandinLasting : int { kWeirStandinOnce = 0, kWeirStandinFromThenOn = 1 };

/// The `nth` call of `name` from now on (1 is the next one) fails with `code` and has no effect.
/// The stand-in cuBLAS has its own names ("cublasSgemm") and status codes.
void weir_standin_fail(const char* name, std::uint64_t nth, int code, WeirStandinLasting lasting);
/// The `nth` kernel that a stream comes to from now on does not run. It breaks its context with
/// `code`, as a kernel that reads a wrong address does: every later call there fails.
void weir_standin_fail_kernel(std::uint64_t nth, CUresult code);
/// Removes every fault, also that of broken contexts.
void weir_standin_clear_faults(void);

// ---- Time.

/// Delays every operation by this much, on `stream` or on weir_standin_all_streams(). Zero removes
/// the delay.
void weir_standin_delay(CUstream stream, std::uint64_t nanoseconds);
/// Stops `stream`, or all streams, before their next operation. A running one ends.
void weir_standin_hold(CUstream stream);
/// Ends weir_standin_hold for the same argument.
void weir_standin_release(CUstream stream);
/// Means all streams, also later ones, to the functions above. No stream has this handle.
CUstream weir_standin_all_streams(void);
/// Number of operations in `stream` that have not ended.
std::size_t weir_standin_pending(CUstream stream);

/// From now on each call of `name` first runs `run` on its thread, like a signal handler just
/// before the driver, except in calls by `run`. Null removes it; a reset does not. `name` must stay
/// valid.
void weir_standin_set_interrupt(const char* name, void (*run)(void* data), void* data);
/// Number of runs since the last call.
std::uint64_t weir_standin_interrupted(void);

/// Runs `run` on this thread while it holds the driver's lock, as in the middle of a call. `run`
/// must not call the driver.
void weir_standin_run_locked(void (*run)(void* data), void* data);

// ---- What happened.

/// Calls of `name` since the start or the reset, failed ones included. Null counts all calls.
std::uint64_t weir_standin_calls(const char* name);
/// Calls of `name` that returned an error, since the start or weir_standin_take_refused; a reset
/// does not change it. Null counts all. Not counted: "not ready" (600), and faults of
/// weir_standin_fail. Errors of the runtime itself are named "cudart".
std::uint64_t weir_standin_refused(const char* name);
struct WeirStandinRefused {
  const char* name;  ///< as above
  int code;
  std::uint64_t calls;
};
/// Reports every refused call by name and code, and forgets them.
void weir_standin_take_refused(void (*tell)(void* data, const WeirStandinRefused* refused),
                               void* data);
/// For the stand-in runtime: counts an error that is not the result of this thread's last call.
/// Zero forgets that result: a function of the runtime begins.
void weir_standin_refuse_runtime(int code);
/// Sets every counter of calls to zero, and each device's peak to the memory in use.
void weir_standin_clear_counters(void);
/// Bytes of a device in use: allocations, what pools and graphs reserve, physical pages, arrays,
/// contexts and modules.
std::size_t weir_standin_used(int device);
/// The peak of bytes in use.
std::size_t weir_standin_peak(int device);
/// Counts a call that is not the driver's and returns the fault that is due, or 0. For libraries
/// that stand in for others (cuBLAS).
int weir_standin_take_fault(const char* name);

/// Records of events with CU_EVENT_BLOCKING_SYNC, each of which may interrupt the host. Since the
/// start or the reset.
std::uint64_t weir_standin_blocking_records(void);

/// Copies, sets and kernels whose memory was freed before they ran. They do not run, and break
/// their context with CUDA_ERROR_ILLEGAL_ADDRESS. A kernel's memory is what its parameters point
/// to, not pointers inside structures. Since the start or the reset.
std::uint64_t weir_standin_late_uses(void);

/// Existing objects that were not released.
struct WeirStandinLive {
  std::size_t streams;
  std::size_t events;
  std::size_t device_blocks;  ///< of cuMemAlloc and its like, of pools and of graphs
  std::size_t device_bytes;
  std::size_t
      host_preferred_bytes;  ///< of those: managed, with preferred location and access on the host
  std::size_t host_blocks;   ///< allocated or registered
  std::size_t pools;         ///< made by cuMemPoolCreate
  std::size_t physical;      ///< of cuMemCreate
  std::size_t reservations;
  std::size_t mappings;
  std::size_t graphs;   ///< with instantiated ones
  std::size_t arrays;   ///< with mipmapped ones
  std::size_t modules;  ///< of cuModuleLoad and its like, without libraries
};
WeirStandinLive weir_standin_live(void);

// ---- Kernels.

struct WeirStandinLaunch {
  const void* symbol;  ///< what the kernel was registered with, or null
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  void** arguments;  ///< addresses of copies, made at the launch
};

/// Kernels known by `symbol` (the function's address in the host's code) or by `name` (its name in
/// the device's code), either of which may be null, run as `run` on the stream's thread. `sizes`
/// are those of its `count` parameters, in bytes. A later call for the same kernel replaces it; a
/// null `run` removes it.
void weir_standin_register_kernel(const void* symbol, const char* name,
                                  void (*run)(const WeirStandinLaunch*), const std::size_t* sizes,
                                  std::size_t count);

}  // extern "C"
