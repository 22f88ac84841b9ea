// A forked child is refused at once, whatever another thread of the parent had locked.

#include <cublas_v2.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "tests/standin/fixture.hpp"
#include "tests/support/forked.hpp"

// No header declares these: nvcc's code calls them at the program's start and end.
extern "C" void** __cudaRegisterFatBinary(void* code);
extern "C" void __cudaUnregisterFatBinary(void** handle);
extern "C" void __cudaRegisterFunction(void** handle, const char* host_function,
                                       char* device_function, const char* device_name,
                                       int thread_limit, uint3* thread, uint3* block,
                                       dim3* block_dim, dim3* grid_dim, int* warp_size);

namespace weir::standin::testing {
namespace {

/// Another thread, which stays inside a call until the end of the scope.
class Elsewhere {
 public:
  using Stay = void (*)(void* self);
  /// `call` is to make a call that runs `stay`.
  explicit Elsewhere(std::function<void(Stay stay, void* self)> call)
      : thread_([this, call = std::move(call)] {
          call(&stay, this);
          raise(arrived_);
        }) {
    arrived_.wait(false);
  }
  ~Elsewhere() {
    raise(over_);
    thread_.join();
    weir_standin_set_interrupt(nullptr, nullptr, nullptr);
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  [[nodiscard]] bool stays() const { return stays_; }

 private:
  static void raise(std::atomic<bool>& flag) {
    flag = true;
    flag.notify_all();
  }
  static void stay(void* self) {
    auto& it = *static_cast<Elsewhere*>(self);
    it.stays_ = true;
    raise(it.arrived_);
    it.over_.wait(false);
  }

  std::atomic<bool> arrived_{false};
  std::atomic<bool> over_{false};
  std::atomic<bool> stays_{false};
  std::thread thread_;  // last, because it uses the others
};

/// Has the driver's lock.
void stay_locked(Elsewhere::Stay stay, void* self) { weir_standin_run_locked(stay, self); }

/// Has the lock of the runtime's devices.
void stay_in_set_device(Elsewhere::Stay stay, void* self) {
  weir_standin_set_interrupt("cuCtxSetCurrent", stay, self);
  ok(cudaSetDevice(0));
}

/// Runs `body` in a child. Returns its exit code, or -SIGALRM if it waits for ever.
template <typename Body>
int run_in_child(const Body& body) {
  return weir::testing::run_forked([&] {
    alarm(60);
    return body();
  });
}

#define REST(name) #name,
constexpr const char* kOfDriver[] = {
#include "standin_driver_rest.inc"
};
constexpr const char* kOfRuntime[] = {
#include "standin_runtime_rest.inc"
};
#undef REST

/// Calls a function with zeros as arguments. Returns -1 if no library has it.
int call_with_zeros(const char* name) {
  using Function =
      int (*)(long, long, long, long, long, long, long, long, long, long, long, long, long, long);
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function == nullptr ? -1 : function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

class StandInFork : public StandIn {};

TEST_F(StandInFork, EveryFunctionOfTheDriverIsRefusedWhileAnotherThreadHadItsLock) {
  const Elsewhere other(&stay_locked);
  EXPECT_EQ(run_in_child([] {
              for (const char* const name : kOfDriver) {
                const int returned = call_with_zeros(name);
                if (returned == CUDA_ERROR_NOT_INITIALIZED) continue;
                dprintf(STDERR_FILENO, "%s returned %d\n", name, returned);
                return 1;
              }
              return 0;
            }),
            0);
}

/// Some check their arguments first, or are not simulated, and then return another error.
TEST_F(StandInFork, EveryFunctionOfTheRuntimeReturnsWhileOtherThreadsHadItsLockAndTheDrivers) {
  const Elsewhere in_runtime(&stay_in_set_device);
  ASSERT_TRUE(in_runtime.stays());
  const Elsewhere in_driver(&stay_locked);
  EXPECT_EQ(run_in_child([] {
              for (const char* const name : kOfRuntime) (void)call_with_zeros(name);
              return cudaFree(nullptr);
            }),
            cudaErrorInitializationError);
}

TEST_F(StandInFork, ControlsDoNothingAndReturnZero) {
  (void)make_memory();
  const Elsewhere other(&stay_locked);
  EXPECT_EQ(run_in_child([] {
              weir_standin_reset();
              weir_standin_fail("cuInit", 1, 1, kWeirStandinOnce);
              weir_standin_hold(weir_standin_all_streams());
              weir_standin_register_kernel(nullptr, "kernel", nullptr, nullptr, 0);
              return weir_standin_used(0) == 0 && weir_standin_live().device_blocks == 0 &&
                             weir_standin_calls(nullptr) == 0 && weir_standin_take_fault("x") == 0
                         ? 0
                         : 1;
            }),
            0);
}

TEST_F(StandInFork, CublasIsNotInitialized) {
  cublasHandle_t handle = nullptr;
  ok(cublasCreate(&handle));
  {
    const Elsewhere other(&stay_locked);
    EXPECT_EQ(run_in_child([&] { return cublasDestroy(handle); }), CUBLAS_STATUS_NOT_INITIALIZED);
  }
  ok(cublasDestroy(handle));
}

TEST_F(StandInFork, AChildEndsWhileAnotherThreadLoadedAKernel) {
  int code = 0;
  void** const handle = __cudaRegisterFatBinary(&code);
  const auto* const symbol = reinterpret_cast<const char*>(&code);
  __cudaRegisterFunction(handle, symbol, nullptr, "kernel", -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  {
    const Elsewhere other([&](Elsewhere::Stay stay, void* self) {
      weir_standin_set_interrupt("cuLibraryLoadData", stay, self);
      cudaFuncAttributes attributes{};
      ok(cudaFuncGetAttributes(&attributes, symbol));
    });
    EXPECT_TRUE(other.stays());
    EXPECT_EQ(run_in_child([&] {
                void** const own = __cudaRegisterFatBinary(&code);
                __cudaRegisterFunction(own, symbol, nullptr, "kernel", -1, nullptr, nullptr,
                                       nullptr, nullptr, nullptr);
                __cudaUnregisterFatBinary(own);
                __cudaUnregisterFatBinary(handle);
                return 0;
              }),
              0);
  }
  __cudaUnregisterFatBinary(handle);
}

TEST_F(StandInFork, ASignalHandlerMayForkInFrontOfTheDriver) {
  static pid_t child;
  child = -1;
  const auto fork_here = [](void* /*data*/) { child = fork(); };
  weir_standin_set_interrupt("cuCtxGetDevice", fork_here, nullptr);
  CUdevice device = 0;
  const CUresult result = cuCtxGetDevice(&device);
  if (child == 0) _exit(result == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  weir_standin_set_interrupt(nullptr, nullptr, nullptr);
  ok(result);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Without the fixture, which calls the runtime.
TEST(StandInForkAtTheStart, AChildDoesNotWaitForTheFirstCallOfAnotherThread) {
  const Elsewhere other([](Elsewhere::Stay stay, void* self) {
    weir_standin_set_interrupt("cuInit", stay, self);
    ok(cudaFree(nullptr));
  });
  if (!other.stays()) GTEST_SKIP() << "an earlier test of this process made the first call";
  EXPECT_EQ(run_in_child([] { return cudaSetDevice(0); }), cudaErrorInitializationError);
}

}  // namespace
}  // namespace weir::standin::testing
