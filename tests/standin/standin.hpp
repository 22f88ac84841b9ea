#pragma once

// What a test tells the stand-in CUDA driver, and asks of it. A program gets these functions by
// linking weir_standin_cuda (see docs/standin.md). Names of calls are those of driver functions
// without what follows their base name: "cuMemAlloc" for cuMemAlloc_v2, "cuStreamWaitEvent" for
// its _ptsz variant too. All functions are thread-safe, and may be called while a stream is held.

#include <cuda.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

extern "C" {

// ---- Devices. Each setting counts from the call on; the environment gives the first ones.

/// How many devices there are, at most 8. WEIR_STANDIN_DEVICES, or 1.
void weir_standin_set_devices(int count);
/// Bytes of memory of each device. WEIR_STANDIN_MEMORY (a number, or one with K, M or G for the
/// powers of 1024), or 1 GiB. What is allocated stays so.
void weir_standin_set_memory(std::size_t bytes);
/// Bytes that a context takes of its device for as long as it exists. WEIR_STANDIN_CONTEXT_MEMORY,
/// or none. Contexts that exist stay as they are, until weir_standin_reset.
void weir_standin_set_context_memory(std::size_t bytes);
/// Bytes that a module or a library takes of the device of the context that it is loaded in.
/// WEIR_STANDIN_MODULE_MEMORY, or none.
void weir_standin_set_module_memory(std::size_t bytes);
/// Loads of modules and libraries wait inside the driver until `count` of them are there at once;
/// 20 seconds at most, and then they return CUDA_ERROR_LAUNCH_TIMEOUT. 0: they wait for nobody.
void weir_standin_set_loads_meet(int count);
/// Whether the devices have virtual memory management (cuMemCreate); they do.
void weir_standin_set_pages_supported(int supported);
/// Whether a device and the host may use managed memory at once: it may then be more than the
/// device has, takes nothing of it here, and can be advised where to be.
/// WEIR_STANDIN_CONCURRENT_MANAGED (1 for yes), or no.
void weir_standin_set_concurrent_managed(int on);
/// Whether cuMemAlloc and cuMemCreate give addresses with no memory behind them: a device of any
/// size then costs the host nothing, and an access ends the program. What is allocated stays as it
/// is. WEIR_STANDIN_ADDRESSES_ONLY (1 for yes), or no.
void weir_standin_set_addresses_only(int on);
/// Whether reserved addresses without a page pass for device memory, except that
/// CU_POINTER_ATTRIBUTE_MAPPED is 0 there; work that touches them ends the program.
/// WEIR_STANDIN_RESERVED_IS_DEVICE (1 for yes), or no: they are unknown to the driver.
void weir_standin_set_reserved_is_device(int on);
/// Whether a launch of a kernel, a graph, a set or a copy returns only when its stream has run it.
/// WEIR_STANDIN_LAUNCHES_BLOCK (1 for yes), or no.
void weir_standin_set_launches_block(int on);
/// Whether host functions and callbacks run one at a time, whatever their streams.
/// WEIR_STANDIN_HOST_FUNCTIONS_SERIAL (1 for yes), or no: each runs when its stream comes to it.
void weir_standin_set_host_functions_serial(int on);
/// What cuDriverGetVersion says. WEIR_STANDIN_DRIVER_VERSION, or the toolkit's.
void weir_standin_set_driver_version(int version);
/// Ends holds, waits for all work, forgets every stream, event and allocation, and takes faults,
/// delays and counters back. Settings are those of the environment again; kernels stay registered.
void weir_standin_reset(void);

// ---- Faults. A later call for the same name adds to the earlier ones.

enum WeirStandinLasting : int { kWeirStandinOnce = 0, kWeirStandinFromThenOn = 1 };

/// The `nth` call of `name` from now on (1 is the next one) fails with `code` and does nothing
/// else. The stand-in cuBLAS goes by its own names ("cublasSgemm") and status codes.
void weir_standin_fail(const char* name, std::uint64_t nth, int code, WeirStandinLasting lasting);
/// The `nth` kernel from now on that a stream comes to does not run, and breaks its context with
/// `code`, as a kernel that reads a wrong address does: from then on every call there fails.
void weir_standin_fail_kernel(std::uint64_t nth, CUresult code);
/// Takes back every fault, also of contexts that are broken.
void weir_standin_clear_faults(void);

// ---- Time.

/// Every operation takes this much longer: on `stream`, or on all of them with
/// weir_standin_all_streams(). Zero takes it back.
void weir_standin_delay(CUstream stream, std::uint64_t nanoseconds);
/// Streams go on to no further operation: `stream`, or all of them. The one that runs ends.
void weir_standin_hold(CUstream stream);
/// Ends what weir_standin_hold began for the same argument.
void weir_standin_release(CUstream stream);
/// Says "all streams, also those of later" to the functions above. No stream has this handle.
CUstream weir_standin_all_streams(void);
/// Operations that `stream` holds and has not ended.
std::size_t weir_standin_pending(CUstream stream);

/// From now on each call of `name` first runs `run` on its thread, as a signal handler would that
/// comes just before the driver: but not in calls that `run` makes. Null takes it back. `name` must
/// stay valid. A reset leaves it.
void weir_standin_set_interrupt(const char* name, void (*run)(void* data), void* data);
/// How often it ran since the last question.
std::uint64_t weir_standin_interrupted(void);

// ---- What happened.

/// Calls of `name` since the start or the reset, failed ones included. Null counts all calls.
std::uint64_t weir_standin_calls(const char* name);
/// Calls of `name` that returned an error, since the start or weir_standin_take_refused; a reset
/// leaves them. Null counts all. Not counted: "not ready" (600), which is an answer, and what
/// weir_standin_fail wished for. What the runtime refuses by itself goes by "cudart".
std::uint64_t weir_standin_refused(const char* name);
struct WeirStandinRefused {
  const char* name;  ///< as above
  int code;
  std::uint64_t calls;
};
/// Tells of every call that was refused, by name and code, and forgets them.
void weir_standin_take_refused(void (*tell)(void* data, const WeirStandinRefused* refused),
                               void* data);
/// For the stand-in runtime: counts an error that is not the answer of this thread's last call.
/// Zero forgets that answer: a function of the runtime begins.
void weir_standin_refuse_runtime(int code);
/// Sets every counter of calls to zero, and each device's peak to what is in use.
void weir_standin_clear_counters(void);
/// Bytes of a device in use: allocations, what pools and graphs reserve, physical pages, arrays,
/// contexts and modules.
std::size_t weir_standin_used(int device);
/// The most that were in use at once.
std::size_t weir_standin_peak(int device);
/// Counts a call that is none of the driver's and returns the fault that is due for it, or 0. For
/// libraries that stand in for others (cuBLAS) and take their faults from here.
int weir_standin_take_fault(const char* name);

/// Records of events that were made with CU_EVENT_BLOCKING_SYNC: each may be an interrupt for the
/// host. Since the start or the reset.
std::uint64_t weir_standin_blocking_records(void);

/// Copies, sets and kernels that came to run when memory they were given was freed already. They do
/// not run, and break their context with CUDA_ERROR_ILLEGAL_ADDRESS. A kernel was given what its
/// parameters point at, not what lies in structures. Since the start or the reset.
std::uint64_t weir_standin_late_uses(void);

/// What exists and was not given back.
struct WeirStandinLive {
  std::size_t streams;
  std::size_t events;
  std::size_t device_blocks;  ///< of cuMemAlloc and its like, of pools and of graphs
  std::size_t device_bytes;
  std::size_t host_preferred_bytes;  ///< of those: managed, to be on the host and read from there
  std::size_t host_blocks;           ///< allocated or registered
  std::size_t pools;                 ///< made by cuMemPoolCreate
  std::size_t physical;              ///< of cuMemCreate
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
/// are those of its `count` parameters, in bytes. A later call for the same kernel replaces it;
/// a null `run` takes it back.
void weir_standin_register_kernel(const void* symbol, const char* name,
                                  void (*run)(const WeirStandinLaunch*), const std::size_t* sizes,
                                  std::size_t count);

}  // extern "C"
