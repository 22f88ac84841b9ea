// A program on the stand-in driver that ends in an unusual way, selected by its argument:
//
//   exit-in CALL   exit(0) in a signal handler, just before the driver answers a CALL that
//                  libweir.so makes for the program
//   exit-beside    from main, while another thread is stuck in a call with a lock of libweir.so
//   exit           from main, with no call under way
//   exit-refused   from main, after one request, for more than the device has
//   cancel-first   a thread whose cancellation is pending at its first CUDA call, with a wrong
//                  name in the environment that causes a warning
//   cancel-failing the same at an allocation that fails and prints a report
//   cancel-waiting the same while an allocation waits for queued work

#include <cuda.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/standin/standin.hpp"

namespace weir::testing {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kBytes = std::size_t{1} << 16;
constexpr int kNeverCalled = 3;

void use_device() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    std::abort();
  }
}

/// With work on `stream` that uses it, if given.
void allocate_and_free(std::size_t bytes, CUstream stream = nullptr) {
  CUdeviceptr pointer = 0;
  if (cuMemAlloc(&pointer, bytes) != CUDA_SUCCESS ||
      (stream != nullptr && cuMemsetD8Async(pointer, 1, 1, stream) != CUDA_SUCCESS) ||
      cuMemFree(pointer) != CUDA_SUCCESS) {
    std::abort();
  }
}

/// Blocks of many sizes, so that not all are cached, on a stream that is behind.
int exit_in(const char* call) {
  constexpr std::size_t kRounds = 16;
  use_device();
  CUstream stream = nullptr;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) std::abort();
  weir_standin_hold(stream);
  (void)std::signal(SIGALRM, [](int /*signal*/) { std::exit(0); });
  weir_standin_set_interrupt(
      call, [](void* /*data*/) { (void)raise(SIGALRM); }, nullptr);
  for (std::size_t i = 1; i <= kRounds; ++i) allocate_and_free(i * 8 * kBytes, stream);
  return kNeverCalled;
}

/// The first allocation asks for the device's size, under the lock of the accounts.
int exit_beside() {
  static std::atomic<bool> stuck{false};
  weir_standin_set_interrupt(
      "cuDeviceTotalMem",
      [](void* /*data*/) {
        stuck.store(true);
        stuck.notify_all();
        stuck.wait(true);  // nobody ever changes it
      },
      nullptr);
  std::thread([] {
    use_device();
    allocate_and_free(kBytes);
  }).detach();
  stuck.wait(false);
  return 0;
}

int exit_with_nothing_under_way() {
  use_device();
  allocate_and_free(kBytes);
  return 0;
}

int exit_refused() {
  use_device();
  CUdeviceptr pointer = 0;
  if (cuMemAlloc(&pointer, std::size_t{1} << 40) != CUDA_ERROR_OUT_OF_MEMORY) std::abort();
  return 0;
}

void cancel_this_thread(void* /*data*/) { (void)pthread_cancel(pthread_self()); }

/// Runs `body` on its own thread. Returns 0 if the thread was cancelled in the program's own code.
int run_cancelled(void* (*body)(void*)) {
  pthread_t thread{};
  void* result = nullptr;
  if (pthread_create(&thread, nullptr, body, nullptr) != 0) return kNeverCalled;
  if (pthread_join(thread, &result) != 0) return kNeverCalled;
  use_device();
  allocate_and_free(kBytes);  // works: the library's state is consistent
  return result == PTHREAD_CANCELED ? 0 : kNeverCalled;
}

int cancel_first() {
  (void)setenv("WEIR_BUDGTE", "1GiB", 1);  // before any call reads it
  const int code = run_cancelled([](void* /*data*/) -> void* {
    cancel_this_thread(nullptr);
    use_device();
    allocate_and_free(kBytes);
    pthread_testcancel();
    return nullptr;
  });
  return code;
}

int cancel_failing() {
  use_device();
  return run_cancelled([](void* /*data*/) -> void* {
    use_device();
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    if (cuMemAlloc(&first, 600 * kMib) != CUDA_SUCCESS) std::abort();
    cancel_this_thread(nullptr);
    if (cuMemAlloc(&second, 600 * kMib) != CUDA_ERROR_OUT_OF_MEMORY) std::abort();
    if (cuMemFree(first) != CUDA_SUCCESS) std::abort();
    pthread_testcancel();
    return nullptr;
  });
}

/// The work continues once the thread has been asked to end and has slept some times.
void cancel_and_release(void* held) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point asked;
  if (asked == Clock::time_point{}) {
    asked = Clock::now();
    cancel_this_thread(nullptr);
  }
  if (Clock::now() - asked > std::chrono::milliseconds(20)) {
    weir_standin_release(static_cast<CUstream>(held));
  }
}

int cancel_waiting() {
  use_device();
  CUstream stream = nullptr;
  CUdeviceptr used = 0;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuMemAllocAsync(&used, 600 * kMib, stream) != CUDA_SUCCESS) {
    std::abort();
  }
  weir_standin_hold(stream);
  if (cuMemsetD8Async(used, 1, 1, stream) != CUDA_SUCCESS ||
      cuMemFreeAsync(used, stream) != CUDA_SUCCESS) {
    std::abort();
  }
  weir_standin_set_interrupt("cuEventQuery", &cancel_and_release, stream);
  return run_cancelled([](void* /*data*/) -> void* {
    use_device();
    allocate_and_free(600 * kMib);
    pthread_testcancel();
    return nullptr;
  });
}

int run(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "exit-in" && argc > 2) return exit_in(argv[2]);
  if (word == "exit-beside") return exit_beside();
  if (word == "exit") return exit_with_nothing_under_way();
  if (word == "exit-refused") return exit_refused();
  if (word == "cancel-first") return cancel_first();
  if (word == "cancel-failing") return cancel_failing();
  if (word == "cancel-waiting") return cancel_waiting();
  return kNeverCalled;
}

}  // namespace
}  // namespace weir::testing

int main(int argc, char** argv) { return weir::testing::run(argc, argv); }
