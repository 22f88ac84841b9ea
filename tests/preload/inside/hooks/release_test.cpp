// To release memory the driver may wait for the device, and the device may wait for the thread that
// releases. So no call waits longer than it may, and nothing that was cached is lost.

#include <array>
#include <tuple>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

constexpr std::size_t kOfDevice = 140 * kMib;
constexpr std::size_t kCachedEach = 60 * kMib;
constexpr std::size_t kMoreThanFree = 100 * kMib;

/// What is called while the device waits for the calling thread.
struct Caller {
  const char* name;
  void (*call)(CUstream stream);
};

std::ostream& operator<<(std::ostream& out, const Caller& caller) { return out << caller.name; }

class DeviceWaitsForTheCaller
    : public Inside,
      public ::testing::WithParamInterface<std::tuple<const char*, Caller>> {
 public:
  using Inside::allocate;
  using Inside::free;
  using Inside::make_pages;
  using Inside::make_pool;

 protected:
  /// The device does nothing more until `come` is set, or much longer than any call may take.
  static void await_caller(void* self) {
    auto& its = *static_cast<DeviceWaitsForTheCaller*>(self);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!its.come && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    its.gave_up = !its.come;
  }

  std::atomic<bool> come{false};
  std::atomic<bool> gave_up{false};
};

void free_if(CUresult code, const CUdeviceptr& pointer) {
  if (code == CUDA_SUCCESS) DeviceWaitsForTheCaller::free(pointer);
}

// Requests may be refused.
constexpr std::array kCallers{
    Caller{"cuMemAlloc",
           [](CUstream /*stream*/) {
             CUdeviceptr pointer = 0;
             free_if(cuMemAlloc(&pointer, kMoreThanFree), pointer);
           }},
    Caller{"cuMemAllocAsync",
           [](CUstream stream) {
             CUdeviceptr pointer = 0;
             free_if(cuMemAllocAsync(&pointer, kMoreThanFree, stream), pointer);
           }},
    Caller{"own_pool",
           [](CUstream stream) {
             CUdeviceptr pointer = 0;
             const CUmemoryPool pool = DeviceWaitsForTheCaller::make_pool();
             free_if(cuMemAllocFromPoolAsync(&pointer, kMoreThanFree, pool, stream), pointer);
           }},
    Caller{"cuMemCreate",
           [](CUstream /*stream*/) {
             CUmemGenericAllocationHandle pages = 0;
             const CUresult code = DeviceWaitsForTheCaller::make_pages(kMoreThanFree, &pages);
             if (code == CUDA_SUCCESS) (void)cuMemRelease(pages);
           }},
    Caller{"cuMemPoolTrimTo",
           [](CUstream /*stream*/) {
             CUmemoryPool pool = nullptr;
             EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
             EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
           }},
    Caller{"trim", [](CUstream /*stream*/) { (void)trim(0); }},
    Caller{"set_budget", [](CUstream /*stream*/) { EXPECT_TRUE(set_budget(0, mib(32))); }},
    Caller{"cuStreamBeginCapture",
           [](CUstream stream) {
             EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
             CUgraph graph = nullptr;
             EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
             EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
           }},
    Caller{"cuMemFree",
           [](CUstream /*stream*/) {
             DeviceWaitsForTheCaller::free(DeviceWaitsForTheCaller::allocate(kMib));
           }},
};

TEST_P(DeviceWaitsForTheCaller, NoReleaseWaitsForItWithoutALimit) {
  const auto& [pool, caller] = GetParam();
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "95%"},
                                 {"WEIR_MAX_WAIT", "20ms"},
                                 {"WEIR_POOL", pool},
                                 {"WEIR_STANDIN_MEMORY", "140M"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kCachedEach);
  const CUdeviceptr in_order = allocate(kCachedEach, stream);
  free(block);
  free(in_order, stream);
  ASSERT_NO_FATAL_FAILURE(settle());

  ASSERT_EQ(cuLaunchHostFunc(make_stream(), await_caller, this), CUDA_SUCCESS);
  caller.call(stream);
  come = true;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_FALSE(gave_up) << "the call ended only when the device no longer waited for it";

  (void)set_budget(0, {kOfDevice});
  (void)trim(0);
  const CUdeviceptr after = allocate(kMoreThanFree);
  EXPECT_LE(weir_standin_peak(0), kOfDevice);
  free(after);
}

class DeviceIsNeverIdle : public Inside, public ::testing::WithParamInterface<const char*> {
 protected:
  static void pass_a_moment(void* queued) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --*static_cast<std::atomic<int>*>(queued);
  }
};

TEST_P(DeviceIsNeverIdle, WhatIsCachedMakesRoomNevertheless) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_POOL", GetParam()}}));
  for (const CUdeviceptr block : {allocate(4 * kMib), allocate(4 * kMib)}) free(block);
  ASSERT_NO_FATAL_FAILURE(settle());
  std::atomic<bool> ends{false};
  std::atomic<int> queued{0};
  std::thread other([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    const CUstream stream = make_stream();
    while (!ends) {
      if (queued >= 4) {
        std::this_thread::yield();
        continue;
      }
      ++queued;
      EXPECT_EQ(cuLaunchHostFunc(stream, pass_a_moment, &queued), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  });
  wait_until([&] { return queued >= 4; });
  free(allocate(8 * kMib));
  ends = true;
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Pools, DeviceIsNeverIdle,
                         ::testing::Values("auto", "naive", "round", "best_fit", "paged",
                                           "unpooled"),
                         [](const ::testing::TestParamInfo<const char*>& test) {
                           return test.param;
                         });

std::string name_of_caller(const ::testing::TestParamInfo<std::tuple<const char*, Caller>>& test) {
  return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
}

INSTANTIATE_TEST_SUITE_P(Pools, DeviceWaitsForTheCaller,
                         ::testing::Combine(::testing::Values("auto", "naive", "round", "best_fit",
                                                              "paged", "unpooled"),
                                            ::testing::ValuesIn(kCallers)),
                         name_of_caller);

}  // namespace
}  // namespace weir::preload::testing
