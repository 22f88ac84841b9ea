// A stand-in NCCL: sums and gathers floats of up to eight processes of one machine, over shared
// memory, each call as one kernel on its stream. Adds in the order of ranks. Shows nothing about
// the real one's speed, algorithms or order of additions.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/standin/after_fork.hpp"
#include "tests/standin/standin.hpp"

namespace {

// nccl.h's results.
constexpr int kSuccess = 0;
constexpr int kUnhandledCudaError = 1;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kVersion = 22'105;  // 2.21.5
constexpr int kFloat = 7;
constexpr int kSum = 0;

struct UniqueId {
  std::array<char, 128> name;  ///< of the shared memory
};

}  // namespace

namespace standin_nccl {

constexpr std::size_t kMostRanks = 8;
constexpr std::size_t kSlot = 1024;  // small, so that tests take several rounds

/// What the processes share: a place for each rank's floats, and a barrier.
struct Shared {
  std::atomic<std::uint64_t> arrived;  ///< at barriers, in all
  std::array<std::array<float, kSlot>, kMostRanks> slots;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace standin_nccl

struct ncclComm {  // NOLINT(readability-identifier-naming): NCCL's name
  standin_nccl::Shared* shared = nullptr;
  std::size_t rank = 0;
  std::size_t ranks = 1;
  std::uint64_t barriers = 0;

  /// Waits for all ranks, but not for ever.
  void barrier() {
    const std::uint64_t target = ++barriers * ranks;
    shared->arrived.fetch_add(1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (shared->arrived.load() < target) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      if (std::chrono::steady_clock::now() < deadline) continue;
      std::fputs("stand-in NCCL: another rank did not come\n", stderr);
      std::abort();
    }
  }
};

namespace {

using standin_nccl::kMostRanks;
using standin_nccl::kSlot;
using standin_nccl::Shared;

struct Call {
  ncclComm* comm;
  bool sums;  ///< or gathers
  std::size_t count;
};

void run_call(const WeirStandinLaunch* launch) {
  const auto& call = *static_cast<const Call*>(launch->arguments[0]);
  const auto* const send = *static_cast<const float* const*>(launch->arguments[1]);
  auto* const receive = *static_cast<float* const*>(launch->arguments[2]);
  ncclComm& comm = *call.comm;
  for (std::size_t first = 0; first < call.count; first += kSlot) {
    const std::size_t count = std::min(kSlot, call.count - first);
    std::copy_n(send + first, count, comm.shared->slots.at(comm.rank).begin());
    comm.barrier();
    for (std::size_t rank = 0; rank < comm.ranks; ++rank) {
      const auto& slot = comm.shared->slots.at(rank);
      float* const to = receive + first + (call.sums ? 0 : rank * call.count);
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = call.sums && rank > 0 ? to[i] + slot.at(i) : slot.at(i);
      }
    }
    comm.barrier();
  }
}

/// Not linked, as in the stand-in cuBLAS.
decltype(&weir_standin_take_fault) take_fault() {
  weir::standin::begin_use();
  static const auto kTakeFault = []() -> decltype(&weir_standin_take_fault) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == nullptr) return nullptr;
    const auto add_kernel = reinterpret_cast<decltype(&weir_standin_register_kernel)>(
        dlsym(driver, "weir_standin_register_kernel"));
    const std::array<std::size_t, 3> sizes{sizeof(Call), sizeof(void*), sizeof(void*)};
    add_kernel(reinterpret_cast<const void*>(&run_call), nullptr, &run_call, sizes.data(),
               sizes.size());
    return reinterpret_cast<decltype(&weir_standin_take_fault)>(
        dlsym(driver, "weir_standin_take_fault"));
  }();
  return kTakeFault;
}

/// Counts the call of `name`, and fails it on demand.
int enter(const char* name) {
  if (weir::standin::is_forked()) return kUnhandledCudaError;
  return take_fault() == nullptr ? kSystemError : static_cast<int>(take_fault()(name));
}

int enqueue(ncclComm* comm, bool sums, const void* send, void* receive, std::size_t count,
            cudaStream_t stream) {
  if (comm == nullptr) return kInvalidArgument;
  Call call{comm, sums, count};
  std::array<void*, 3> arguments{&call, &send, &receive};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&run_call), dim3(1), dim3(1),
                          arguments.data(), 0, stream) == cudaSuccess
             ? kSuccess
             : kUnhandledCudaError;
}

Shared* open_shared(const char* name, int flags) {
  const int file = shm_open(name, O_RDWR | flags, 0600);
  if (file < 0) return nullptr;
  void* const memory =
      ftruncate(file, sizeof(Shared)) == 0
          ? mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
          : MAP_FAILED;
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Shared*>(memory);
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = kVersion;
  return enter("ncclGetVersion");
}

int ncclGetUniqueId(UniqueId* id) {
  if (const int entered = enter(__func__); entered != kSuccess) return entered;
  static std::atomic<int> made{0};
  *id = {};
  (void)std::snprintf(id->name.data(), id->name.size(), "/weir-standin-nccl-%d-%d", getpid(),
                      made.fetch_add(1));
  Shared* const shared = open_shared(id->name.data(), O_CREAT | O_EXCL);
  if (shared == nullptr) return kSystemError;
  munmap(shared, sizeof *shared);
  return kSuccess;
}

int ncclCommInitRank(ncclComm** comm, int ranks, UniqueId id, int rank) {
  if (const int entered = enter(__func__); entered != kSuccess) return entered;
  if (ranks < 1 || static_cast<std::size_t>(ranks) > kMostRanks || rank < 0 || rank >= ranks) {
    return kInvalidArgument;
  }
  Shared* const shared = open_shared(id.name.data(), 0);
  if (shared == nullptr) return kSystemError;
  *comm = new ncclComm{shared, static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks)};
  (*comm)->barrier();
  if (rank == 0) shm_unlink(id.name.data());  // all have opened it
  return kSuccess;
}

int ncclCommDestroy(ncclComm* comm) {
  if (const int entered = enter(__func__); entered != kSuccess) return entered;
  (void)cudaDeviceSynchronize();
  munmap(comm->shared, sizeof *comm->shared);
  delete comm;
  return kSuccess;
}

int ncclCommAbort(ncclComm* /*comm*/) { return enter("ncclCommAbort"); }
int ncclGroupStart() { return enter("ncclGroupStart"); }
int ncclGroupEnd() { return enter("ncclGroupEnd"); }

int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int operation,
                  ncclComm* comm, cudaStream_t stream) {
  if (const int entered = enter(__func__); entered != kSuccess) return entered;
  if (type != kFloat || operation != kSum) return kInvalidArgument;
  return enqueue(comm, true, send, receive, count, stream);
}

int ncclAllGather(const void* send, void* receive, std::size_t count, int type, ncclComm* comm,
                  cudaStream_t stream) {
  if (const int entered = enter(__func__); entered != kSuccess) return entered;
  if (type != kFloat) return kInvalidArgument;
  return enqueue(comm, false, send, receive, count, stream);
}

const char* ncclGetErrorString(int result) {
  return result == kSuccess ? "no error" : "the stand-in NCCL refuses";
}
}
