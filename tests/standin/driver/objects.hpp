#pragma once

// The objects of the stand-in driver. One mutex, Driver::mutex, guards all of them. Only the
// program's work on a stream's thread (kernels, copies, host functions) runs without it.

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace weir::standin {

using Lock = std::unique_lock<std::mutex>;

struct Capture;
struct Context;
struct Device;
struct GraphMemory;
struct Stream;

/// A place in a stream's order: passed once the stream has ended operation `sequence`.
struct Point {
  std::shared_ptr<Stream> stream;
  std::uint64_t sequence = 0;

  [[nodiscard]] bool passed() const;
  void wait(Lock& lock) const;
};

/// A block that an operation works on.
struct Touch {
  std::uintptr_t base = 0;
  std::uint64_t number = 0;
};

struct Operation {
  std::function<void()> work = {};            ///< run without the lock, and not in a broken context
  std::function<void()> settle = {};          ///< run afterwards under the lock, always
  std::function<void(CUresult)> report = {};  ///< run without the lock, also in a broken context
  std::vector<Point> after = {};
  bool is_kernel = false;
  bool is_host_function = false;
  std::vector<Touch> touches = {};
};

struct Stream {
  Context* context = nullptr;
  CUstream handle = nullptr;
  unsigned flags = CU_STREAM_DEFAULT;
  int priority = 0;
  std::deque<Operation> queue;
  std::uint64_t enqueued = 0;
  std::uint64_t ended = 0;
  bool closing = false;
  bool held = false;
  std::chrono::nanoseconds delay{0};
  std::shared_ptr<Capture> capture;  ///< the one under way, also if it is invalid
  std::condition_variable work;      ///< the stream's thread sleeps here
  std::condition_variable progress;  ///< all others

  [[nodiscard]] bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

/// How far each stream of a capture had come, for work that is ordered after all of that.
using CaptureClock = std::map<const Stream*, std::uint64_t>;

struct Node {
  std::function<void()> work = {};
  bool is_kernel = false;
  bool is_host_function = false;
  bool is_memory = false;  ///< allocates or frees memory, which is not work
  std::vector<Touch> touches = {};
};

/// An object of the program that is destroyed with the last graph that has it (cuUserObjectCreate).
struct UserObject {
  CUhostFn destroy = nullptr;
  void* data = nullptr;

  UserObject(CUhostFn its_destroy, void* its_data) : destroy(its_destroy), data(its_data) {}
  ~UserObject();  // hands it to the driver's thread that destroys such objects
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;
};

/// The nodes, in an order that is correct on one stream.
struct Graph {
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<UserObject>> objects;
  std::vector<std::shared_ptr<GraphMemory>> taken;  ///< by its nodes
  std::vector<std::shared_ptr<GraphMemory>> given;  ///< likewise, also what another graph takes
};

struct GraphExec {
  std::shared_ptr<Graph> graph;
  bool frees_on_launch = false;  ///< what the launch before left
};

struct Capture {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;  ///< which began it
  Stream* origin = nullptr;
  bool invalid = false;
  Graph graph;
  std::shared_ptr<Graph> target;           ///< an existing graph that receives the nodes, if any
  bool target_is_new = false;              ///< created for this capture: destroyed if that fails
  std::map<Stream*, CaptureClock> clocks;  ///< of every stream that takes part
  std::uint64_t id = 0;
  bool ended = false;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  struct Record {
    Point point;
    std::chrono::steady_clock::time_point at;
  };
  std::shared_ptr<Record> record;    ///< the most recent one, if it was not captured
  std::shared_ptr<Capture> capture;  ///< if it was captured
  CaptureClock clock;
};

struct Pool {
  Device* device = nullptr;
  CUmemoryPool handle = nullptr;
  std::size_t reserved = 0;
  std::size_t used = 0;
  std::size_t reserved_high = 0;
  std::size_t used_high = 0;
  std::uint64_t release_threshold = 0;
  std::uint64_t max_size = 0;
  std::map<int, int> reuse = {};                 ///< by attribute
  std::map<int, CUmemAccess_flags> access = {};  ///< of other devices, by ordinal
  bool destroyed = false;                        ///< while blocks of it live
};

enum class BlockKind {
  kDevice,
  kManaged,
  kPooled,
  kGraph,
  kHost,
  kRegistered,
  kImported,  ///< another process's, opened by its handle
};

struct Block {
  BlockKind kind = BlockKind::kDevice;
  std::size_t bytes = 0;
  std::size_t charged = 0;  ///< to the device or the pool
  Context* context = nullptr;
  std::shared_ptr<Pool> pool = {};
  unsigned flags = 0;
  std::uint64_t number = 0;      ///< unique, so that another block at this address differs
  bool freeing = false;          ///< a stream has the order to free it
  std::uint64_t shared = 0;      ///< number in its handle for other processes, once there is one
  std::uint64_t owner = 0;       ///< process, of an imported one
  unsigned opened = 0;           ///< how often, of an imported one
  GraphMemory* graph = nullptr;  ///< whose memory this is
  std::shared_ptr<GraphMemory> taken = {};  ///< the same, while a launch has it
  bool addresses_only = false;              ///< nothing is behind it
  bool on_host = false;                     ///< managed memory with the host as preferred location
  bool accessed = false;                    ///< and the device reads it from there
};

/// An array of cuArrayCreate or cuMipmappedArrayCreate: counted bytes without contents.
struct Array {
  Context* context = nullptr;
  std::size_t charged = 0;
};

/// A module of a context, or a library.
struct Module {
  Context* context = nullptr;  ///< whose device is charged; null once that context has ended
  std::size_t charged = 0;
};

/// Physical memory of cuMemCreate.
struct Pages {
  Device* device = nullptr;
  std::size_t bytes = 0;
  int file = -1;
  std::size_t mappings = 0;
  std::size_t references = 1;  ///< handles given out
  bool exportable = false;     ///< as a file
  bool imported = false;       ///< made by another process, or exported by this one
};

struct Mapping {
  std::size_t bytes = 0;
  std::uint64_t pages = 0;  ///< the handle
};

struct Context {
  Device* device = nullptr;
  CUcontext handle = nullptr;
  bool primary = false;
  bool active = true;
  unsigned flags = 0;
  std::uint64_t id = 0;     ///< new each time a primary context is created
  std::size_t charged = 0;  ///< for being there
  std::size_t references = 0;
  std::set<const Context*> peers;  ///< whose memory it may access
  CUresult broken = CUDA_SUCCESS;
  std::shared_ptr<Stream> legacy;  ///< made when first used, as those of threads are
  std::map<std::thread::id, std::shared_ptr<Stream>> of_threads;
  std::set<std::shared_ptr<Stream>> streams;  ///< all, also destroyed ones until they have ended
};

struct Device {
  int ordinal = 0;
  std::size_t total = 0;
  std::size_t used = 0;
  std::size_t peak = 0;
  std::size_t graph_reserved = 0;  ///< for what graphs allocate
  std::size_t graph_reserved_high = 0;
  std::size_t graph_used = 0;  ///< of that: launches that have not returned it
  std::size_t graph_used_high = 0;
  std::shared_ptr<Context> primary;
  std::shared_ptr<Pool> default_pool;
  std::shared_ptr<Pool> pool;  ///< the current one

  /// Refuses what exceeds the total.
  void charge(std::size_t bytes);
  void credit(std::size_t bytes) { used -= bytes; }
};

}  // namespace weir::standin
