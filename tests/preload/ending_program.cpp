// A program on the stand-in driver that ends in an unusual way. Its word says how:
//
//   exit-in CALL   exit(0) in a signal handler, just before the driver answers a CALL that
//                  libweir.so makes for the program
//   exit-beside    from main, while another thread is stuck in a call with a lock of libweir.so
//   exit           from main, with nothing under way

#include <cuda.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/standin/standin.hpp"

namespace weir::testing {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 16;
constexpr int kNeverCalled = 3;

void use_device() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    std::abort();
  }
}

/// With work on `stream` that uses it, if that is given.
void allocate_and_free(std::size_t bytes, CUstream stream = nullptr) {
  CUdeviceptr pointer = 0;
  if (cuMemAlloc(&pointer, bytes) != CUDA_SUCCESS ||
      (stream != nullptr && cuMemsetD8Async(pointer, 1, 1, stream) != CUDA_SUCCESS) ||
      cuMemFree(pointer) != CUDA_SUCCESS) {
    std::abort();
  }
}

/// Blocks of many sizes, so that not all of them are cached, and of a stream that is behind.
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
        stuck.wait(true);  // for ever
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

int run(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "exit-in" && argc > 2) return exit_in(argv[2]);
  if (word == "exit-beside") return exit_beside();
  if (word == "exit") return exit_with_nothing_under_way();
  return kNeverCalled;
}

}  // namespace
}  // namespace weir::testing

int main(int argc, char** argv) { return weir::testing::run(argc, argv); }
