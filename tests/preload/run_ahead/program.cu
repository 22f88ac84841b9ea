// A training loop that loads batches faster than the device computes them, for the stand-in, whose
// compute stream is slow. It knows nothing of Weir, but for the marks around its batches, which do
// nothing without it. Prints what it computed; ends with 3 where memory ran out.
//
//   run_ahead_program streamed|listed|freed|needs-more [marked]

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "tests/standin/standin.hpp"
#include "tools/preload/borders/weir.h"

extern "C" __global__ void step(std::uint64_t* state, const std::uint64_t* batch, int count) {
  for (int i = 0; i < count; ++i) *state = *state * 31 + batch[i];
}

namespace {

constexpr int kBatches = 24;
constexpr std::size_t kBytes = 1 << 20;  // of a batch's buffer
constexpr int kCount = 4096;             // numbers in it that are computed with: loading is quick
/// Nanoseconds of each operation on the compute stream: far more than the host takes for a batch,
/// on a busy machine, too.
constexpr std::uint64_t kDelay = 12'000'000;

void step_on_host(std::uint64_t* state, const std::uint64_t* batch, int count) {
  for (int i = 0; i < count; ++i) *state = *state * 31 + batch[i];
}

void run_step(const WeirStandinLaunch* launch) {
  step_on_host(*static_cast<std::uint64_t**>(launch->arguments[0]),
               *static_cast<const std::uint64_t**>(launch->arguments[1]),
               *static_cast<int*>(launch->arguments[2]));
}

/// Not linked: the program comes to the driver as others do.
template <typename F>
F* stand_in(const char* name, F* /*like*/) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto* function = driver == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(driver, name));
  if (function != nullptr) return function;
  std::fprintf(stderr, "no %s in libcuda.so.1\n", name);
  std::exit(1);
}
#define STAND_IN(name) stand_in(#name, static_cast<decltype(&(name))>(nullptr))

int current_batch = 0;

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "batch %d: %s: %s\n", current_batch, call, cudaGetErrorName(code));
  std::fflush(nullptr);
  std::_Exit(code == cudaErrorMemoryAllocation ? 3 : 1);
}
#define CHECK(call) check(call, #call)

/// What the loader makes of a batch.
const std::vector<std::uint64_t>& load(int batch) {
  static std::vector<std::uint64_t> numbers(kCount);
  for (int i = 0; i < kCount; ++i) {
    numbers[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(batch) * 1000003 + i;
  }
  return numbers;
}

struct Loop {
  cudaStream_t copy = nullptr;
  cudaStream_t compute = nullptr;
  cudaEvent_t copied = nullptr;
  std::uint64_t* state = nullptr;

  Loop() {
    const std::size_t sizes[] = {sizeof state, sizeof state, sizeof(int)};
    CHECK(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    CHECK(cudaMalloc(&state, sizeof *state));
    CHECK(cudaMemset(state, 0, sizeof *state));
    CHECK(cudaDeviceSynchronize());  // the set runs late, and no stream of ours waits for it
    STAND_IN(weir_standin_register_kernel)(nullptr, "step", &run_step, sizes, 3);
    STAND_IN(weir_standin_delay)(compute, kDelay);
  }

  /// Copies the batch to `input` and computes with it, behind the copy.
  void enqueue(std::uint64_t* input, int batch) {
    CHECK(cudaMemcpyAsync(input, load(batch).data(), kCount * sizeof *input, cudaMemcpyHostToDevice,
                          copy));
    CHECK(cudaEventRecord(copied, copy));
    CHECK(cudaStreamWaitEvent(compute, copied, 0));
    step<<<1, 1, 0, compute>>>(state, input, kCount);
    CHECK(cudaGetLastError());
  }

  int finish(int batches) {
    std::uint64_t computed = 0;
    std::uint64_t expected = 0;
    CHECK(cudaStreamSynchronize(compute));
    CHECK(cudaMemcpy(&computed, state, sizeof computed, cudaMemcpyDeviceToHost));
    for (int i = 0; i < batches; ++i) step_on_host(&expected, load(i).data(), kCount);
    std::printf("%d batches, %s\n", batches, computed == expected ? "right" : "wrong");
    return computed == expected ? 0 : 1;
  }
};

/// Memory in stream order: taken on the copy stream, given back behind the work on the other.
void streamed(Loop& loop, int batch) {
  std::uint64_t* input = nullptr;
  CHECK(cudaMallocAsync(&input, kBytes, loop.copy));
  loop.enqueue(input, batch);
  CHECK(cudaFreeAsync(input, loop.compute));
}

/// Memory for anybody, given back at once: without Weir that waits for the device.
void freed(Loop& loop, int batch) {
  std::uint64_t* input = nullptr;
  CHECK(cudaMalloc(&input, kBytes));
  loop.enqueue(input, batch);
  CHECK(cudaFree(input));
}

/// A list of what is in use, each given back once its event has passed. Nobody waits for one.
void listed(Loop& loop, int batch) {
  struct Used {
    std::uint64_t* input;
    cudaEvent_t done;
  };
  static std::deque<Used> list;
  while (!list.empty() && cudaEventQuery(list.front().done) == cudaSuccess) {
    CHECK(cudaFreeAsync(list.front().input, loop.compute));
    CHECK(cudaEventDestroy(list.front().done));
    list.pop_front();
  }
  (void)cudaGetLastError();  // an event that is not ready leaves its code there
  Used used{};
  CHECK(cudaMallocAsync(&used.input, kBytes, loop.copy));
  CHECK(cudaEventCreateWithFlags(&used.done, cudaEventDisableTiming));
  loop.enqueue(used.input, batch);
  CHECK(cudaEventRecord(used.done, loop.compute));
  list.push_back(used);
}

/// Keeps all that it gets, and makes do with less once there is no more.
int needs_more(Loop& loop) {
  std::vector<std::uint64_t*> kept;
  std::uint64_t* input = nullptr;
  cudaError_t code = cudaSuccess;
  while (kept.size() < 1000 && (code = cudaMalloc(&input, kBytes)) == cudaSuccess) {
    kept.push_back(input);
  }
  for (int again = 0; again < 3; ++again) {
    if (cudaMalloc(&input, kBytes) != cudaErrorMemoryAllocation) code = cudaErrorUnknown;
  }
  if (cudaMallocAsync(&input, kBytes, loop.copy) != cudaErrorMemoryAllocation) {
    code = cudaErrorUnknown;
  }
  if (code != cudaErrorMemoryAllocation || cudaGetLastError() != code || kept.size() < 3) {
    std::fprintf(stderr, "%zu blocks, then %s\n", kept.size(), cudaGetErrorName(code));
    return 1;
  }
  for (int i = 0; i < 2; ++i, kept.pop_back()) CHECK(cudaFree(kept.back()));
  CHECK(cudaMalloc(&input, kBytes / 2));
  CHECK(cudaFree(input));
  CHECK(cudaMalloc(&input, kBytes));
  loop.enqueue(input, 0);
  return loop.finish(1);
}

}  // namespace

int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "";
  const bool marked = count > 2 && std::strcmp(arguments[2], "marked") == 0;
  void (*one)(Loop&, int) = nullptr;
  if (std::strcmp(mode, "streamed") == 0) one = &streamed;
  if (std::strcmp(mode, "freed") == 0) one = &freed;
  if (std::strcmp(mode, "listed") == 0) one = &listed;
  if (one == nullptr && std::strcmp(mode, "needs-more") != 0) {
    std::fprintf(stderr, "what is '%s'?\n", mode);
    return 2;
  }
  Loop loop;
  if (one == nullptr) return needs_more(loop);
  for (current_batch = 0; current_batch < kBatches; ++current_batch) {
    if (marked) (void)weir_batch_begin("train");
    one(loop, current_batch);
    if (marked) weir_batch_end();
  }
  return loop.finish(kBatches);
}
