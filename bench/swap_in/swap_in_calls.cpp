// One figure of the cost of libweir.so: a driver API program on the stand-in, measured with or
// without the library preloaded. Started by swap_in_bench.cpp. One long file, because a measured
// program has one copy of the set-up and no library of ours.
//
//   swap_in_calls FIGURE driver|swapped-in      prints the nanoseconds of one operation

#include <cuda.h>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/standin/standin.hpp"
#include "tools/program/median.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = 64 << 10;
constexpr int kLaunchesOfAPoint = 32;  // see tools/preload/hooks/hooks_work.cpp

[[noreturn]] void give_up(const char* what, int code) {
  std::fprintf(stderr, "swap_in_calls: %s: %d\n", what, code);
  std::exit(1);
}

void check(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) give_up(what, code);
}
#define CHECK(call) check(call, #call)

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Returns the median of the chunks' means. A chunk takes some tens of microseconds, less than a
/// scheduler time slice, so that other load disturbs some chunks but not the median.
template <typename Chunk>
double median_of(std::size_t chunks, const Chunk& chunk) {
  std::vector<double> means(chunks);
  for (double& mean : means) mean = chunk();  // warm by the middle of them
  return weir::median(std::move(means));
}

template <typename Operation>
double time_of(std::size_t chunks, int count, const Operation& operation) {
  return median_of(chunks, [&] {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) operation();
    return since(start) / count;
  });
}

void use_device() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
}

CUstream new_stream() {
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

void make_streams(int count) {
  for (int i = 0; i < count; ++i) (void)new_stream();
}

void pair() {
  CUdeviceptr pointer = 0;
  CHECK(cuMemAlloc(&pointer, kBytes));
  CHECK(cuMemFree(pointer));
}

double alloc_free() {
  use_device();
  (void)new_stream();
  return time_of(401, 32, pair);
}

/// Sets up a device of 80 GiB, with addresses without memory: blocks may wait for each other's
/// frees.
void use_large_device() {
  weir_standin_set_memory(std::size_t{80} << 30);
  weir_standin_set_addresses_only(1);
  use_device();
}

/// Returns whether the library is loaded.
bool is_swapped_in() { return dlsym(RTLD_DEFAULT, "weir_api_version") != nullptr; }

/// Returns the mean of operations that share occasional work, such as a fence of the library that
/// checks all of `streams` streams. Each chunk includes all of that work.
template <typename Operation>
double time_of_cycles(int streams, int operations, const Operation& operation) {
  const int cycle = is_swapped_in() ? std::max(32, 2 * streams / operations) : 32;
  const std::size_t chunks = streams <= 100 ? 401 : 7;
  for (int i = 0; i < 2 * cycle; ++i) operation();  // until all memory it needs is there
  return time_of(chunks, cycle, operation) / operations;
}

double alloc_free_known(int streams) {
  use_large_device();
  make_streams(streams);
  return time_of_cycles(streams, 1, pair);
}

double alloc_free_batch_known(int streams) {
  use_large_device();
  make_streams(streams);
  std::vector<CUdeviceptr> pointers(32);
  return time_of_cycles(streams, 32, [&] {
    for (CUdeviceptr& pointer : pointers) CHECK(cuMemAlloc(&pointer, kBytes));
    for (const CUdeviceptr pointer : pointers) CHECK(cuMemFree(pointer));
  });
}

/// After this many streams that each had a block, worked and ended.
double alloc_free_after_streams(int streams) {
  use_large_device();
  for (int i = 0; i < streams; ++i) {
    CUstream stream = new_stream();
    CUdeviceptr pointer = 0;
    CHECK(cuMemAllocAsync(&pointer, kBytes, stream));
    CHECK(cuLaunchHostFunc(
        stream, [](void*) {}, nullptr));
    CHECK(cuMemFreeAsync(pointer, stream));
    CHECK(cuStreamDestroy(stream));
  }
  CHECK(cuCtxSynchronize());
  return time_of_cycles(1, 1, pair);
}

/// Like a program that frees its blocks together and then allocates similar ones: one fence, and
/// one check of the streams, serves all of them.
double alloc_free_batch() {
  use_device();
  (void)new_stream();
  constexpr int kBatch = 32;
  std::vector<CUdeviceptr> pointers(kBatch);
  return time_of(401, 1,
                 [&] {
                   for (CUdeviceptr& pointer : pointers) CHECK(cuMemAlloc(&pointer, kBytes));
                   for (const CUdeviceptr pointer : pointers) CHECK(cuMemFree(pointer));
                 }) /
         kBatch;
}

double alloc_free_async() {
  use_device();
  CUstream stream = new_stream();
  return time_of(401, 32, [&] {
    CUdeviceptr pointer = 0;
    CHECK(cuMemAllocAsync(&pointer, kBytes, stream));
    CHECK(cuMemFreeAsync(pointer, stream));
  });
}

/// A launch that the stand-in refuses at once: nothing is enqueued and no thread is woken. The hook
/// treats it like any other launch.
void refused_launch(CUstream stream) {
  const CUresult code = cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  if (code != CUDA_ERROR_INVALID_HANDLE) give_up("a launch of nothing", code);
}

double launch(int streams) {
  use_device();
  CUstream stream = new_stream();
  make_streams(streams - 1);
  return time_of(401, kLaunchesOfAPoint * 10, [&] { refused_launch(stream); });
}

/// A launch that the stand-in does enqueue. Its stream is held meanwhile, so that its thread does
/// not compete for the processor.
double launch_enqueued() {
  use_device();
  CUstream stream = new_stream();
  weir_standin_register_kernel(
      nullptr, "nothing", [](const WeirStandinLaunch*) {}, nullptr, 0);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CHECK(cuLibraryLoadData(&library, "code", nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetKernel(&kernel, library, "nothing"));
  CHECK(cuKernelGetFunction(&function, kernel));
  return median_of(101, [&] {
    constexpr int kLaunches = kLaunchesOfAPoint * 4;
    weir_standin_hold(stream);
    const auto start = Clock::now();
    for (int i = 0; i < kLaunches; ++i) {
      CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    }
    const double mean = since(start) / kLaunches;
    weir_standin_release(stream);
    CHECK(cuStreamSynchronize(stream));
    return mean;
  });
}

/// Like a runtime that looks up the driver's functions, some 440 of them, at its start.
double get_proc_address() {
  use_device();
  return time_of(401, 200, [] {
    void* function = nullptr;
    CUdriverProcAddressQueryResult result{};
    CHECK(cuGetProcAddress("cuMemAlloc", &function, 13000, 0, &result));
  });
}

/// A program without CUDA, from start to end; in our environment, and so with the same preload.
double process() {
  return time_of(21, 1, [] {
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    pid_t child = 0;
    int status = 0;
    if (posix_spawnp(&child, name, nullptr, nullptr, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
      give_up("true", status);
    }
  });
}

const std::pair<std::string_view, std::function<double()>> kFigures[] = {
    {"alloc-free", alloc_free},
    {"alloc-free/batches:32", alloc_free_batch},
    {"alloc-free-async", alloc_free_async},
    {"launch", [] { return launch(1); }},
    {"alloc-free/known:1", [] { return alloc_free_known(1); }},
    {"alloc-free/known:100", [] { return alloc_free_known(100); }},
    {"alloc-free/known:10000", [] { return alloc_free_known(10'000); }},
    {"alloc-free/batches:32/known:1", [] { return alloc_free_batch_known(1); }},
    {"alloc-free/batches:32/known:100", [] { return alloc_free_batch_known(100); }},
    {"alloc-free/batches:32/known:10000", [] { return alloc_free_batch_known(10'000); }},
    {"launch/known:100", [] { return launch(100); }},
    {"launch/known:10000", [] { return launch(10'000); }},
    {"alloc-free/streams-ended:1000", [] { return alloc_free_after_streams(1000); }},
    {"alloc-free/streams-ended:100000", [] { return alloc_free_after_streams(100'000); }},
    {"launch/enqueued", launch_enqueued},
    {"get-proc-address", get_proc_address},
    {"process", process},
};

}  // namespace

int main(int count, char** arguments) {
  const std::string_view figure = count == 3 ? arguments[1] : "";
  const std::string_view swapped = count == 3 ? arguments[2] : "";
  const bool is_swapped = is_swapped_in();
  if (is_swapped != (swapped == "swapped-in")) give_up("LD_PRELOAD is not as was said", is_swapped);
  for (const auto& [name, measure] : kFigures) {
    if (name != figure) continue;
    std::printf("%.6g\n", measure());
    return 0;
  }
  give_up("no such figure", count);
}
