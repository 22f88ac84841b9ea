// A program as nvcc makes them, which allocates, launches and frees, and lives and ends in many
// ways. 0, or 1 and lines that say what is not so.

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/standin/standin.hpp"

extern "C" __global__ void add_one(int* number) { *number += 1; }

namespace {

constexpr unsigned kRounds = 300;
std::atomic<int> failures{0};

bool expect(bool holds, const char* what) {
  if (!holds) {
    std::printf("not so: %s (last error: %s)\n", what, cudaGetErrorString(cudaPeekAtLastError()));
    ++failures;
  }
  return holds;
}

/// Not linked: the program has to come to the driver as others do.
template <typename F>
F* stand_in(const char* name, F* /*like*/) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto* function = driver == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(driver, name));
  if (function != nullptr) return function;
  std::printf("no %s in libcuda.so.1\n", name);
  std::_Exit(1);
}
#define STAND_IN(name) stand_in(#name, static_cast<decltype(&(name))>(nullptr))

void add_one_on_host(const WeirStandinLaunch* launch) {
  ++**static_cast<int**>(launch->arguments[0]);
}

void register_kernel() {
  const std::size_t sizes[] = {sizeof(int*)};
  STAND_IN(weir_standin_register_kernel)(nullptr, "add_one", &add_one_on_host, sizes, 1);
}

/// One number in 64 KiB of its own, over and over.
void work() {
  for (unsigned i = 0; i < kRounds; ++i) {
    int* number = nullptr;
    if (!expect(cudaMalloc(&number, 65536) == cudaSuccess, "memory is allocated")) return;
    int value = 41;
    cudaMemcpy(number, &value, sizeof value, cudaMemcpyHostToDevice);
    add_one<<<1, 1>>>(number);
    expect(cudaGetLastError() == cudaSuccess, "a kernel is launched");
    cudaMemcpy(&value, number, sizeof value, cudaMemcpyDeviceToHost);
    expect(value == 42, "the kernel ran on the memory");
    expect(cudaFree(number) == cudaSuccess, "memory is freed");
  }
}

/// Work whose allocations the driver sees ("passed") or hardly sees ("served").
void work_checked(const char* expected) {
  register_kernel();
  STAND_IN(weir_standin_clear_counters)();
  work();
  const auto calls = STAND_IN(weir_standin_calls)("cuMemAlloc");
  std::printf("%llu calls of cuMemAlloc came to the driver\n",
              static_cast<unsigned long long>(calls));
  if (std::strcmp(expected, "served") == 0) {
    expect(calls < kRounds / 10, "hardly any of them do");
  } else {
    expect(calls == kRounds, "all of them do");
  }
}

void expect_child(pid_t child, const char* what) {
  int status = 0;
  expect(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
             WEXITSTATUS(status) == 0,
         what);
}

/// The child's calls come to the driver, which knows nothing of the child.
void fork_and_go_on(const char* expected) {
  work_checked(expected);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    void* memory = nullptr;
    expect(cudaMalloc(&memory, 4096) == cudaErrorInitializationError, "the driver refuses a child");
    std::exit(failures == 0 ? 0 : 1);
  }
  expect_child(child, "the child ends well");
  work_checked(expected);
}

void run_itself(char* program, char* expected) {
  work_checked(expected);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    char mode[] = "work";
    char* const arguments[] = {program, mode, expected, nullptr};
    execv(program, arguments);
    std::_Exit(127);
  }
  expect_child(child, "the program that it starts ends well");
}

int* left = nullptr;

/// Neither expect nor exit(): the process ends already.
void check_at_exit(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::printf("not so: %s at exit (%s)\n", what, cudaGetErrorString(code));
  std::fflush(stdout);
  std::_Exit(1);
}

/// One handler runs behind Weir's own, one before it.
void free_at_exit(const char* expected) {
  std::atexit([] { check_at_exit(cudaFree(left), "memory is freed late"); });
  work_checked(expected);
  expect(cudaMalloc(&left, 4096) == cudaSuccess, "memory is allocated");
  std::atexit([] {
    check_at_exit(cudaFree(left), "memory is freed");
    check_at_exit(cudaMalloc(&left, 4096), "memory is allocated");
  });
}

[[noreturn]] void exit_from_thread(const char* expected) {
  work_checked(expected);
  std::thread ending([] { std::exit(failures == 0 ? 0 : 1); });
  ending.join();  // which never comes: the process ends first
  std::abort();
}

void expect_no_driver() {
  void* memory = nullptr;
  expect(cudaMalloc(&memory, 4) == cudaErrorInsufficientDriver, "cudaMalloc needs another driver");
  expect(cudaMalloc(&memory, 4) == cudaErrorInsufficientDriver, "and goes on to");
}

/// Threads that use CUDA before main, where the environment asks for them.
struct Early {
  Early() {
    if (std::getenv("LOADER_EARLY_THREADS") == nullptr) return;
    register_kernel();
    for (int i = 0; i < 4; ++i) threads.emplace_back(&work);
  }
  void join() {
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
  std::vector<std::thread> threads;
};
Early early;

}  // namespace

int main(int count, char** arguments) {
  early.join();
  const char* mode = count == 3 ? arguments[1] : "";
  const auto is = [&](const char* one) { return std::strcmp(mode, one) == 0; };
  if (is("work")) {
    work_checked(arguments[2]);
  } else if (is("fork")) {
    fork_and_go_on(arguments[2]);
  } else if (is("fork-exec")) {
    run_itself(arguments[0], arguments[2]);
  } else if (is("free-at-exit")) {
    free_at_exit(arguments[2]);
  } else if (is("exit-from-thread")) {
    exit_from_thread(arguments[2]);
  } else if (is("leave-at-once")) {
    work_checked(arguments[2]);
    std::fflush(stdout);
    _exit(failures == 0 ? 0 : 1);
  } else if (is("no-driver")) {
    expect_no_driver();
  } else {
    std::printf("runtime_program MODE served|passed: what is '%s'?\n", mode);
    return 2;
  }
  return failures == 0 ? 0 : 1;
}
