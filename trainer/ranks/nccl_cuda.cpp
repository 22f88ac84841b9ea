#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "trainer/ranks/nccl.hpp"
#include "trainer/ranks/shards.hpp"

namespace weir {
namespace {

/// The part of NCCL's binary interface that is used: nccl.h of NCCL 2, whose values and functions
/// here are the same in 2.9 to 2.31. No header is needed to build.
using Comm = struct ncclComm*;
struct UniqueId {
  std::array<char, 128> internal;  // NCCL_UNIQUE_ID_BYTES; passed by value
};
constexpr int kNcclSuccess = 0;  // ncclSuccess
constexpr int kFloat = 7;        // ncclFloat32
constexpr int kSum = 0;          // ncclSum
static_assert(sizeof(UniqueId) == sizeof(NcclId));

struct NcclLibrary {
  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*init_rank)(Comm*, int, UniqueId, int) = nullptr;
  int (*destroy)(Comm) = nullptr;
  int (*abort)(Comm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, Comm, cudaStream_t) = nullptr;
  const char* (*error_text)(int) = nullptr;

  void check(int result, const char* call) const {
    if (result == kNcclSuccess) return;
    throw Error(std::string(call) + " failed (" + std::to_string(result) +
                "): " + error_text(result));
  }
};

template <typename Function>
void look_up(void* library, const char* name, Function*& function) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) throw UsageError(std::string("libnccl.so.2 has no ") + name);
  function = reinterpret_cast<Function*>(symbol);
}

NcclLibrary load_nccl() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    throw UsageError(
        "several ranks on GPUs need NCCL: install libnccl2, or name the folder of libnccl.so.2 in "
        "LD_LIBRARY_PATH (" +
        std::string(reason != nullptr ? reason : "no reason given") + ")");
  }
  NcclLibrary found;
  look_up(library, "ncclGetVersion", found.get_version);
  look_up(library, "ncclGetUniqueId", found.get_unique_id);
  look_up(library, "ncclCommInitRank", found.init_rank);
  look_up(library, "ncclCommDestroy", found.destroy);
  look_up(library, "ncclCommAbort", found.abort);
  look_up(library, "ncclGroupStart", found.group_start);
  look_up(library, "ncclGroupEnd", found.group_end);
  look_up(library, "ncclAllReduce", found.all_reduce);
  look_up(library, "ncclAllGather", found.all_gather);
  look_up(library, "ncclGetErrorString", found.error_text);
  return found;
}

const NcclLibrary& nccl() {
  static const NcclLibrary kLibrary = load_nccl();
  return kLibrary;
}

class Nccl final : public DeviceCollectives {
 public:
  Nccl(const NcclId& id, int rank, int size, int ordinal)
      : rank_(rank), size_(size), ordinal_(ordinal) {
    UniqueId group{};
    std::memcpy(&group, id.data(), id.size());
    const CudaScope scope(ordinal_);
    nccl().check(nccl().init_rank(&comm_, size, group, rank), "ncclCommInitRank");
  }
  ~Nccl() override {
    if (comm_ != nullptr)
      (void)nccl().abort(comm_);  // other ranks may be gone: nothing to wait for
  }

  [[nodiscard]] std::string engine() const override {
    int code = 0;  // 2.21.5 is 22105
    nccl().check(nccl().get_version(&code), "ncclGetVersion");
    return "NCCL " + std::to_string(code / 10'000) + "." + std::to_string(code / 100 % 100) + "." +
           std::to_string(code % 100);
  }

  void all_reduce(Stream& stream, std::span<const std::span<float>> parts) override {
    std::uint64_t floats = 0;
    nccl().check(nccl().group_start(), "ncclGroupStart");
    for (const std::span<float> part : parts) {
      floats += part.size();
      nccl().check(nccl().all_reduce(part.data(), part.data(), part.size(), kFloat, kSum, comm_,
                                     cuda_stream(stream)),
                   "ncclAllReduce");
    }
    nccl().check(nccl().group_end(), "ncclGroupEnd");
    count(all_reduce_bytes(floats, rank_, size_));
  }

  void all_gather(Stream& stream, std::span<const float> mine, std::span<float> all) override {
    nccl().check(
        nccl().all_gather(mine.data(), all.data(), mine.size(), kFloat, comm_, cuda_stream(stream)),
        "ncclAllGather");
    count(all_gather_bytes(mine.size(), size_));
  }

  [[nodiscard]] Traffic traffic() const noexcept override { return {calls_.load(), bytes_.load()}; }

  void finish() override {
    const CudaScope scope(ordinal_);
    nccl().check(nccl().destroy(std::exchange(comm_, nullptr)), "ncclCommDestroy");
  }

 private:
  void count(std::uint64_t bytes) noexcept {
    calls_.fetch_add(1);
    bytes_.fetch_add(bytes);
  }

  const int rank_;
  const int size_;
  const int ordinal_;
  Comm comm_ = nullptr;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace

NcclId make_nccl_id() {
  UniqueId made{};
  nccl().check(nccl().get_unique_id(&made), "ncclGetUniqueId");
  return made.internal;
}

std::unique_ptr<DeviceCollectives> open_nccl(const NcclId& id, int rank, int size, int ordinal) {
  return std::make_unique<Nccl>(id, rank, size, ordinal);
}

}  // namespace weir
