#pragma once

// A program under the swap-in: its hooks are linked in, in front of the stand-in driver. A test's
// calls by the driver's names are what a program would call.

#include <cuda.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/standin/standin.hpp"
#include "tests/support/print.hpp"
#include "tests/support/refused.hpp"
#include "tools/preload/driver/driver.hpp"
#include "tools/preload/process/api.hpp"
#include "tools/preload/process/process.hpp"

extern char** environ;

// The form that drivers of every version have; a toolkit may declare only a later one.
// NOLINTNEXTLINE(readability-identifier-naming): the driver's name
extern "C" CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);

namespace weir::preload::testing {

using weir::testing::expect_refused;

inline constexpr std::size_t kMib = std::size_t{1} << 20;
/// A block of the size that suffices for most tests.
inline constexpr std::size_t kBytes = 8192;

template <typename Condition>
void wait_until(const Condition& condition) {
  while (!condition()) std::this_thread::yield();
}

/// A call that another thread makes while this thread is inside a call.
class Meanwhile {
 public:
  /// Begins at this thread's `nth` call of the driver's `name`, which waits until `call` has
  /// returned, or can get no further without this thread.
  Meanwhile(const char* name, int nth, std::function<void()> call)
      : left_(nth), call_(std::move(call)) {
    weir_standin_set_interrupt(
        name, [](void* self) { static_cast<Meanwhile*>(self)->come(); }, this);
  }
  ~Meanwhile() { end(); }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;
  [[nodiscard]] bool has_begun() const { return left_ == 0; }
  /// Waits for `call`, and makes it now if it has not begun.
  void end() {
    weir_standin_set_interrupt(nullptr, nullptr, nullptr);
    if (left_ > 0) begin();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void begin() {
    left_ = 0;
    thread_ = std::thread([this] {
      call_();
      returned_ = true;
    });
  }
  void come() {
    if (std::this_thread::get_id() != here_ || left_ == 0 || --left_ != 0) return;
    begin();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (!returned_ && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }

  const std::thread::id here_ = std::this_thread::get_id();
  int left_;
  std::function<void()> call_;
  std::atomic<bool> returned_{false};
  std::thread thread_;
};

class Inside : public ::testing::Test {
 protected:
  using Variables = std::initializer_list<std::pair<const char*, const char*>>;

  ~Inside() override {
    release_all();
    expect_all_is_counted();
  }

  /// Begins the program, with only these variables and the first device's primary context. Assert
  /// it, like each preparation: ASSERT_NO_FATAL_FAILURE(start()).
  static void start(Variables variables = {}) { start_with(std::vector(variables)); }
  static void start_with(const std::vector<Variables::value_type>& variables) {
    ASSERT_EQ(Process::get_if_any(), nullptr)
        << "settings are read once, so each of these tests needs a process of its own: use ctest";
    forget_variables();
    // A further thread would disturb tests that fork.
    setenv("WEIR_PUBLISH", "0", 1);
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    weir_standin_reset();
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    use_device(0);
  }
  /// Makes the primary context of `device` current on this thread.
  static void use_device(int device) {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }

  [[nodiscard]] static CUcontext current() {
    CUcontext context = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
  }
  static void use(CUcontext context) { ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS); }
  /// Which is current from then on.
  static CUcontext make_context(int device = 0) {
    CUcontext context = nullptr;
    EXPECT_EQ(cuCtxCreate_v2(&context, 0, device), CUDA_SUCCESS);
    return context;
  }
  /// Runs `body` on a thread of its own, with the first device.
  template <typename Body>
  static void on_another_thread(const Body& body) {
    std::thread([&] {
      ASSERT_NO_FATAL_FAILURE(use_device(0));
      body();
    }).join();
  }

  [[nodiscard]] static CUevent make_event() {
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return event;
  }
  static void begin_capture(CUstream stream,
                            CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
  }
  /// Expects that nothing has broken it.
  static void end_capture(CUstream stream) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS) << "the capture was broken";
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  static void expect_end_refused(CUstream stream, CUresult code) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), code);
  }
  [[nodiscard]] static CUmemoryPool default_pool() {
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    return pool;
  }
  [[nodiscard]] static CUmemoryPool make_pool() {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    return pool;
  }

  [[nodiscard]] static CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
  }
  [[nodiscard]] static CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc(&pointer, bytes), CUDA_SUCCESS);
    return pointer;
  }
  [[nodiscard]] static CUdeviceptr allocate(std::size_t bytes, CUstream stream) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAllocAsync(&pointer, bytes, stream), CUDA_SUCCESS);
    return pointer;
  }
  /// What a request returns that may fail. Its memory stays allocated.
  [[nodiscard]] static CUresult try_allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    return cuMemAlloc(&pointer, bytes);
  }
  [[nodiscard]] static CUresult try_allocate(std::size_t bytes, CUstream stream) {
    CUdeviceptr pointer = 0;
    return cuMemAllocAsync(&pointer, bytes, stream);
  }
  /// Pages of the first device, past the pool.
  static CUresult make_pages(std::size_t bytes, CUmemGenericAllocationHandle* pages = nullptr) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle handle = 0;
    return cuMemCreate(pages != nullptr ? pages : &handle, bytes, &properties, 0);
  }
  static void free(CUdeviceptr pointer) { EXPECT_EQ(cuMemFree(pointer), CUDA_SUCCESS); }
  static void free(CUdeviceptr pointer, CUstream stream) {
    EXPECT_EQ(cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
  }
  /// Enqueues work on `stream` that uses the memory, and continues until the stream is released.
  static void keep_busy(CUstream stream, CUdeviceptr pointer) {
    hold(stream);
    EXPECT_EQ(cuMemsetD8Async(pointer, 1, 1, stream), CUDA_SUCCESS);
  }
  static void hold(CUstream stream) {
    held().push_back(stream);
    weir_standin_hold(stream);
  }
  static void release_all() {
    for (const CUstream stream : held()) weir_standin_release(stream);
    weir_standin_release(weir_standin_all_streams());
  }
  /// Makes a call that waits for the device until it has asked it often: then `stream` is released.
  template <typename Call>
  static void release_while_waiting(CUstream stream, const Call& call) {
    weir_standin_clear_counters();
    std::thread releasing([&] {
      wait_until([] { return weir_standin_calls("cuEventQuery") > 20; });
      weir_standin_release(stream);
    });
    call();
    releasing.join();
  }
  /// Whether any of several new blocks is `pointer`; frees them.
  [[nodiscard]] static bool is_handed_out(CUdeviceptr pointer, std::size_t bytes) {
    return is_among(
        pointer, [&] { return allocate(bytes); }, [](CUdeviceptr p) { free(p); });
  }
  [[nodiscard]] static bool is_handed_out(CUdeviceptr pointer, std::size_t bytes, CUstream stream,
                                          int requests = 4) {
    return is_among(
        pointer, [&] { return allocate(bytes, stream); }, [&](CUdeviceptr p) { free(p, stream); },
        requests);
  }
  /// Lets everything end, and the pool notice it.
  static void settle() {
    release_all();
    // The next poll passes an event that the first one recorded.
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      arena().pool().poll();
    }
  }

  [[nodiscard]] static Arena& arena() {
    Arena* const found = Process::get()->contexts().current();
    if (found == nullptr) std::abort();  // a test without a context
    return *found;
  }
  /// A batch of the calling thread.
  [[nodiscard]] static std::optional<TicketRef> begin_batch_in(Arena& arena, const char* kind) {
    Call call;
    return arena.batches().begin(call, kind);
  }
  static void end_batch_in(Arena& arena) {
    Call call;
    arena.batches().end(call);
  }
  [[nodiscard]] static Statistics statistics() { return arena().pool().statistics(); }
  [[nodiscard]] static Bytes used() { return arena().account().used(); }
  /// What the account has of a kind of memory that the driver served past the pools.
  [[nodiscard]] static Bytes passed(const std::string& kind) {
    for (const Passed& each : arena().account().passed_kinds()) {
      if (each.kind == kind) return each.level.current;
    }
    return {};
  }
  /// What the program is told to be free.
  [[nodiscard]] static std::size_t free_bytes() {
    std::size_t free = 0;
    EXPECT_EQ(cuMemGetInfo(&free, nullptr), CUDA_SUCCESS);
    return free;
  }
  /// Driver calls since the counters were cleared, without the query of the current context, with
  /// which each call of a program begins.
  [[nodiscard]] static std::uint64_t calls() {
    return weir_standin_calls(nullptr) - weir_standin_calls("cuCtxGetCurrent");
  }

  /// Whether the account has to know all of the driver's memory at the test's end.
  inline static bool all_is_counted = true;

 private:
  /// What the driver has given this process is in the budget's account, which is never above the
  /// budget, but for the kinds that do not count.
  static void expect_all_is_counted() {
    Process* const process = Process::get_if_any();
    if (process == nullptr || !all_is_counted) return;
    for (Device* const device : process->devices().all()) {
      (void)device->own().refresh();
      Bytes given = device->account().used();
      for (const Passed& kind : device->account().passed_kinds()) {
        if (!kind.counted) given += kind.level.current;
      }
      EXPECT_LE(weir_standin_used(device->number()), given.count) << "not in the account";
    }
  }
  static std::vector<CUstream>& held() {
    static std::vector<CUstream> streams;
    return streams;
  }
  static void forget_variables() {
    std::vector<std::string> names;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string text = *variable;
      const std::string name = text.substr(0, text.find('='));
      const bool ours = name.starts_with("WEIR_") || name.starts_with("MXNET_");
      if (ours && !name.starts_with("WEIR_TEST_")) names.push_back(name);
    }
    for (const std::string& name : names) unsetenv(name.c_str());
  }
  template <typename Allocate, typename Free>
  static bool is_among(CUdeviceptr pointer, const Allocate& allocate_one, const Free& free_one,
                       int requests = 4) {
    std::vector<CUdeviceptr> taken;
    bool found = false;
    for (int i = 0; i < requests; ++i) {
      taken.push_back(allocate_one());
      found = found || taken.back() == pointer;
    }
    for (const CUdeviceptr each : taken) free_one(each);
    return found;
  }
};

}  // namespace weir::preload::testing
