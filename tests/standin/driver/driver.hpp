#pragma once

// The one driver of the process, and how its functions are entered.

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "tests/standin/after_fork.hpp"
#include "tests/standin/driver/objects.hpp"

namespace weir::standin {

inline constexpr int kMostDevices = 8;

struct Fault {
  std::string name;
  std::uint64_t left = 1;  ///< calls until it strikes
  int code = 0;
  bool lasting = false;
};

/// Ends a function of the driver with an error, from anywhere inside `api`.
struct Refused {
  CUresult code;
};
inline void pass(CUresult code) {
  if (code != CUDA_SUCCESS) throw Refused{code};
}
inline void require(bool holds, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
  if (!holds) throw Refused{otherwise};
}
/// What `pointer` points to. Refuses null.
template <typename T>
T& given(T* pointer) {
  require(pointer != nullptr);
  return *pointer;
}

/// Handles are generated and never reused, so that a stale one is recognized.
template <typename Handle, typename T>
class Handles {
 public:
  explicit Handles(std::uintptr_t first) : next_(first) {}

  Handle add(T value) {
    const auto handle = reinterpret_cast<Handle>(next_ += 16);
    values_.emplace(handle, std::move(value));
    return handle;
  }
  /// Null when there is none.
  [[nodiscard]] T* find(Handle handle) {
    const auto found = values_.find(handle);
    return found == values_.end() ? nullptr : &found->second;
  }
  /// Refuses an unknown one.
  [[nodiscard]] T& get(Handle handle, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    T* const found = find(handle);
    require(found != nullptr, otherwise);
    return *found;
  }
  void remove(Handle handle) { values_.erase(handle); }
  [[nodiscard]] auto& all() { return values_; }

 private:
  std::uintptr_t next_;
  std::map<Handle, T> values_;
};

/// The version of the driver that this library replaces.
int built_version();

/// What weir_standin_set_NAME and WEIR_STANDIN_... switch on; see standin.hpp.
#define WEIR_STANDIN_SWITCHES(SWITCH)                    \
  SWITCH(concurrent_managed, "CONCURRENT_MANAGED")       \
  SWITCH(addresses_only, "ADDRESSES_ONLY")               \
  SWITCH(reserved_is_device, "RESERVED_IS_DEVICE")       \
  SWITCH(launches_block, "LAUNCHES_BLOCK")               \
  SWITCH(host_functions_serial, "HOST_FUNCTIONS_SERIAL") \
  SWITCH(pages_in_captures, "PAGES_IN_CAPTURES")         \
  SWITCH(shareable, "SHAREABLE")

struct Driver {
  std::mutex mutex;
  bool initialized = false;
  int device_count = 1;
  int version = built_version();
  std::size_t context_memory = 0;  ///< taken by a context of its device
  std::size_t module_memory = 0;   ///< that a module or library takes
  bool pages_supported = true;     ///< virtual memory management, as the attribute says
#define SWITCH(member, variable) bool member = false;
  WEIR_STANDIN_SWITCHES(SWITCH)
#undef SWITCH
  std::array<Device, kMostDevices> devices;

  Handles<CUcontext, std::shared_ptr<Context>> contexts{0x1c0000000000};
  Handles<CUstream, std::shared_ptr<Stream>> streams{0x1d0000000000};
  Handles<CUevent, std::shared_ptr<Event>> events{0x1e0000000000};
  Handles<CUgraph, std::shared_ptr<Graph>> graphs{0x1f0000000000};
  Handles<CUgraphExec, GraphExec> graph_execs{0x200000000000};
  struct OwnedObject {
    std::shared_ptr<UserObject> object;
    unsigned references = 0;  ///< of the program
  };
  Handles<CUuserObject, OwnedObject> user_objects{0x270000000000};
  Handles<CUmemoryPool, std::shared_ptr<Pool>> pools{0x210000000000};
  Handles<CUarray, Array> arrays{0x220000000000};
  Handles<CUmipmappedArray, Array> mipmapped_arrays{0x230000000000};
  Handles<CUmodule, Module> modules{0x240000000000};
  Handles<CUlibrary, Module> libraries{0x250000000000};
  std::map<std::uintptr_t, Block> blocks;
  std::map<std::uint64_t, Pages> pages;
  std::uint64_t next_pages = 1;
  std::map<std::uintptr_t, std::size_t> reservations;
  std::map<std::uintptr_t, Mapping> mappings;
  std::set<std::shared_ptr<Capture>> captures;  ///< under way
  std::uint64_t next_capture = 1;
  std::uintptr_t next_node = 0x260000000000;  ///< handles of nodes, never looked up
  std::uint64_t next_context = 1;
  std::uint64_t next_shared = 1;
  std::uint64_t next_block = 1;
  std::uint64_t blocking_records = 0;  ///< of events that a thread may sleep on
  std::uint64_t late_uses = 0;         ///< operations whose memory was freed before they ran

  std::unordered_map<std::string_view, std::uint64_t> calls;     ///< by names that are never freed
  std::map<std::pair<std::string, int>, std::uint64_t> refused;  ///< calls by name and code
  std::vector<Fault> faults;
  std::vector<Fault> kernel_faults;
  bool held = false;
  std::chrono::nanoseconds delay{0};

  std::deque<std::pair<CUhostFn, void*>> dead_objects;  ///< to be destroyed
  bool objects_served = false;                          ///< their thread exists
  std::condition_variable object_died;                  ///< it sleeps here

  int loads_to_meet = 0;  ///< loads of code that wait for each other inside the driver
  int loads_waiting = 0;  ///< of those
  std::uint64_t load_meetings = 0;
  std::condition_variable loads_met;

  std::deque<std::shared_ptr<Stream>> unserved;  ///< created, and not yet taken by a thread
  std::size_t idle_threads = 0;                  ///< of streams that are gone
  std::condition_variable stream_made;           ///< those sleep here
  bool in_host_function = false;                 ///< one runs, if they are serial
  std::condition_variable host_function_ended;   ///< the others sleep here

  Driver();
  /// Reads device count, memory and version from the environment.
  void read_settings();
};

/// Created at the first call and never destroyed: threads of streams may outlive static objects.
Driver& driver();

/// The contexts that a thread has pushed; the last one is current.
struct Thread {
  std::vector<CUcontext> contexts;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool in_host_function = false;
  CUresult last_result = CUDA_SUCCESS;  ///< of the last call
};
Thread& this_thread();

/// Counts a call, and returns the code of the fault that is due. Needs the lock.
int count_call(Driver& driver, const char* name);

enum class Needs {
  kNothing,     ///< may be called before cuInit
  kDriver,      ///< initialized
  kContext,     ///< and a current context, not destroyed and not broken
  kCanCapture,  ///< and neither this thread nor a global capture of another forbids unsafe calls
  kPages,       ///< kDriver, and no capture forbids it, unless pages may be made in captures
};

/// The state of one call. The lock is held when it begins.
struct Call {
  Driver& driver;
  Lock lock;
  Context* context = nullptr;  ///< the current one, where one is needed
  bool uncounted = false;      ///< its error is not counted
};

/// Runs the function that a test inserts between the program's call and the driver.
void interrupt(const char* name);

/// Makes the checks common to all functions.
void enter(Call& call, const char* name, Needs needs);

/// Ends a function: counts errors.
void leave(Call& call, const char* name, CUresult result);

/// A driver function: calls `body` with a `Call&` after all checks. The result is that of `body`,
/// if it has one, or what it throws.
template <typename Body>
CUresult api(const char* name, Needs needs, Body&& body) noexcept {
  interrupt(name);  // may fork
  if (is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
  Driver& the_driver = driver();
  Call call{the_driver, Lock(the_driver.mutex)};
  CUresult result = CUDA_SUCCESS;
  try {
    enter(call, name, needs);
    if constexpr (std::is_void_v<std::invoke_result_t<Body, Call&>>) {
      std::forward<Body>(body)(call);
    } else {
      result = std::forward<Body>(body)(call);
    }
  } catch (const Refused& refused) {
    result = refused.code;
  }
  leave(call, name, result);
  return result;
}

/// A function by which tests control and query the driver: calls `body` with a `Call&`. Does
/// nothing in a forked child, and returns zero.
template <typename Body>
auto control(Body&& body) {
  using Result = std::invoke_result_t<Body, Call&>;
  if (is_forked()) return Result();
  Driver& the_driver = driver();
  Call call{the_driver, Lock(the_driver.mutex)};
  return std::forward<Body>(body)(call);
}

/// The variant of an argument for programs with per-thread default streams: stream 0 is the
/// thread's own.
template <typename T>
T per_thread(T argument) {
  return argument;
}
template <>
inline CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}
/// Defines the variant of a function. The names of the parameters follow.
#define WEIR_PTSZ(name, parameters, ...) \
  CUresult name##_ptsz parameters { return weir::standin::on_own_stream(&(name), __VA_ARGS__); }
template <typename... P, typename... A>
CUresult on_own_stream(CUresult (*function)(P...), A... arguments) {
  return function(per_thread<P>(arguments)...);
}

Device& get_device(Driver& driver, CUdevice ordinal,
                   CUresult otherwise = CUDA_ERROR_INVALID_DEVICE);

/// Returns the context of this handle while it lives, otherwise null.
Context* find_context(Driver& driver, CUcontext handle);
/// Begins a context's life and takes its memory.
void begin_context(Driver& driver, Context& context);
/// Removes everything that belongs to a context. Waits for its streams.
void clear_context(Call& call, Context& context);

}  // namespace weir::standin
