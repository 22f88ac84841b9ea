// Which pool serves a request, and how pools of one device help each other when memory runs out.
// One long file, because all cases share the fixture and its view of the pools.

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <utility>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/log_capture.hpp"

namespace weir::preload::testing {
namespace {

using ::testing::HasSubstr;

class PoolsInside : public Inside {
 protected:
  /// `serves: kind` of each existing pool.
  static std::vector<std::string> kinds() {
    std::vector<std::string> all;
    for (const Pools::Part& part : arena().pool().parts()) {
      if (part.pool == nullptr) continue;
      all.push_back(std::string(part.serves) + ": " +
                    std::string(to_string(part.pool->options().kind.value)));
    }
    return all;
  }
};

TEST_F(PoolsInside, StreamOrderIsServedFromPagesAndCuMemAllocByAllocationsOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const CUdeviceptr tensor = allocate(3 * kMib, stream);
  const CUdeviceptr segment = allocate(20 * kMib);
  EXPECT_THAT(kinds(), ::testing::ElementsAre("cuMemAlloc: naive", "stream order: paged"));
  EXPECT_TRUE(arena().upstream().is_paged(tensor));
  EXPECT_FALSE(arena().upstream().is_paged(segment));
  CUdeviceptr base = 0;
  std::size_t size = 0;
  ASSERT_EQ(cuMemGetAddressRange(&base, &size, segment), CUDA_SUCCESS);
  EXPECT_EQ(base, segment);
  EXPECT_EQ(size, 20 * kMib);
  // Each may be freed by the other's function.
  free(tensor);
  free(segment, stream);
  settle();
  EXPECT_EQ(statistics().allocated.current, Bytes{});
  EXPECT_EQ(statistics().failures, 0U);
}

TEST_F(PoolsInside, AutoCanBeSaid) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "Auto"}, {"MXNET_GPU_MEM_POOL_TYPE", "Round"}}));
  free(allocate(kMib, nullptr), nullptr);
  EXPECT_THAT(kinds(), ::testing::ElementsAre("cuMemAlloc: naive", "stream order: paged"));
  EXPECT_EQ(Process::get()->summary().pool, "auto");
}

TEST_F(PoolsInside, TheSummarySaysOfEachPoolWhatItServedAndWhatWasQueuedThere) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream busy = make_stream();
  const CUdeviceptr tensor = allocate(4 * kMib, busy);
  keep_busy(busy, tensor);
  free(tensor, busy);
  (void)allocate(4 * kMib, make_stream());
  (void)allocate(20 * kMib);
  arena().pool().reset_peaks_in_order();  // as a program does after each epoch
  const std::vector<PoolSummary> pools = Process::get()->summary().devices.at(0).pools;
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0].serves + ": " + pools[0].kind, "cuMemAlloc: naive");
  EXPECT_EQ(pools[0].queued, Bytes{});
  EXPECT_EQ(pools[0].needed, mib(20));
  EXPECT_EQ(pools[0].reserved, mib(20));
  EXPECT_EQ(pools[1].serves + ": " + pools[1].kind, "stream order: paged");
  EXPECT_EQ(pools[1].allocated, mib(4));
  EXPECT_EQ(pools[1].queued, mib(4));
  EXPECT_EQ(pools[1].needed, mib(8));
  EXPECT_EQ(pools[1].reserved, mib(8));
}

TEST_F(PoolsInside, SegmentsOfStreamOrderLeaveTheBudgetToCuMemAlloc) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  weir_standin_set_pages_supported(0);
  const CUdeviceptr tensor = allocate(5 * kBytes, nullptr);
  EXPECT_THAT(kinds(), ::testing::ElementsAre("cuMemAlloc: naive", "stream order: best_fit"));
  EXPECT_EQ(statistics().reserved.current, mib(4));  // a 16th
  const CUdeviceptr segment = allocate(58 * kMib);
  free(segment);
  // A larger request has its own segment.
  const CUdeviceptr large = allocate(12 * kMib, nullptr);
  EXPECT_EQ(arena().pool().in_order().reserved.current, mib(16));
  free(large, nullptr);
  free(tensor, nullptr);
  EXPECT_EQ(statistics().failures, 0U);
}

TEST_F(PoolsInside, SegmentsOfStreamOrderFollowABudgetThatBeganBelowAPage) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}}));
  (void)allocate(500 << 10, nullptr);
  (void)allocate(400 << 10);
  ASSERT_EQ(arena().device().set_budget(mib(64), "the test").after, mib(64));
  (void)allocate(1000 << 10, nullptr);
  EXPECT_LT(arena().pool().in_order().reserved.current, mib(5));
  (void)allocate(50 * kMib);
  EXPECT_THAT(kinds(), ::testing::ElementsAre("cuMemAlloc: naive", "stream order: best_fit"));
}

TEST_F(PoolsInside, SegmentsOfStreamOrderAreAsLargeAsTheUserSays) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_POOL_SEGMENT_SIZE", "20MiB"}}));
  weir_standin_set_pages_supported(0);
  (void)allocate(kBytes, nullptr);
  EXPECT_EQ(statistics().reserved.current, mib(20));
}

TEST_F(PoolsInside, ANamedKindServesAll) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "best_fit"}}));
  free(allocate(kMib, nullptr), nullptr);
  free(allocate(kMib));
  EXPECT_THAT(kinds(), ::testing::ElementsAre("all: best_fit"));
}

TEST_F(PoolsInside, WhoAllocatesNothingInStreamOrderHasNoPoolForIt) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  free(allocate(kMib), stream);
  free(allocate(kMib));
  std::size_t free_bytes = 0;
  ASSERT_EQ(cuMemGetInfo(&free_bytes, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(kinds(), ::testing::ElementsAre("cuMemAlloc: naive"));
  EXPECT_EQ(weir_standin_calls("cuMemAddressReserve"), 0U);
  EXPECT_EQ(weir_standin_calls("cuMemCreate"), 0U);
}

TEST_F(PoolsInside, PeaksAreOfTheSumAndNotTheSumOfPeaks) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  free(allocate(8 * kMib));
  settle();
  EXPECT_EQ(arena().pool().trim(), mib(8));
  free(allocate(6 * kMib, stream), stream);
  const Statistics now = arena().statistics();
  EXPECT_EQ(now.allocated.peak, mib(8));
  EXPECT_EQ(now.reserved.peak, mib(8));
  EXPECT_EQ(now.reserved.current, mib(6));
  const CUdeviceptr both = allocate(4 * kMib);
  const CUdeviceptr more = allocate(6 * kMib, stream);
  EXPECT_EQ(arena().statistics().allocated.peak, mib(10));
  EXPECT_EQ(arena().statistics().misses, 3U);
  EXPECT_EQ(arena().statistics().hits, 1U);
  free(both);
  free(more, stream);
}

TEST_F(PoolsInside, RecentPeaksAreOfTheSumSinceTheirReset) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr segment = allocate(20 * kMib);
  const auto peaks = [] {
    MemoryInfo info{};
    EXPECT_TRUE(memory_info(0, info));
    return std::pair(info.allocated_peak, info.reserved_peak);
  };
  EXPECT_EQ(peaks(), std::pair(mib(20), mib(20)));
  free(allocate(30 * kMib));
  EXPECT_EQ(peaks(), std::pair(mib(50), mib(50)));
  EXPECT_TRUE(reset_peaks(0));
  EXPECT_EQ(peaks(), std::pair(mib(20), mib(50)));
  EXPECT_EQ(trim(0), mib(30));
  const CUstream stream = make_stream();
  const CUdeviceptr tensor = allocate(8 * kMib, stream);
  EXPECT_EQ(peaks(), std::pair(mib(28), mib(50))) << "of both pools";
  free(segment);
  EXPECT_TRUE(reset_peaks(0));
  EXPECT_EQ(peaks(), std::pair(mib(8), mib(28)));
  free(tensor, stream);
  EXPECT_EQ(peaks(), std::pair(mib(8), mib(28)));
  // The summary's are since the beginning.
  EXPECT_EQ(statistics().allocated.peak, mib(50));
  expect_refused("cuDevicePrimaryCtxGetState", CUDA_ERROR_INVALID_DEVICE);
  EXPECT_FALSE(reset_peaks(7));
}

TEST_F(PoolsInside, ListsItsMemoryWithSegmentsAndStreams) {
  EXPECT_TRUE(memory_blocks(0).empty()) << "before CUDA is used";
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr segment = allocate(20 * kMib);
  const CUstream stream = make_stream();
  const CUdeviceptr tensor = allocate(3 * kMib, stream);
  const CUdeviceptr other = allocate(kBytes, nullptr);
  keep_busy(stream, tensor);
  free(other, nullptr);
  free(tensor, stream);
  std::map<std::uintptr_t, Bytes> sums;
  std::map<CUdeviceptr, MemoryBlock> by_address;
  Bytes all;
  for (const MemoryBlock& each : memory_blocks(0)) {
    by_address[each.block.begin] = each;
    sums[each.segment] += each.block.size;
    all += each.block.size;
  }
  for (const auto& [address, each] : by_address) {
    EXPECT_EQ(sums[each.segment], each.segment_size);
    EXPECT_LE(each.segment, address);
  }
  EXPECT_EQ(all, statistics().reserved.current);
  EXPECT_EQ(by_address.at(segment).segment, segment);
  EXPECT_EQ(by_address.at(segment).block.requested, mib(20));
  EXPECT_EQ(by_address.at(segment).stream, nullptr);
  EXPECT_EQ(by_address.at(tensor).stream, stream);
  EXPECT_EQ(by_address.at(tensor).block.size, mib(3));
  EXPECT_EQ(by_address.at(tensor).block.requested, Bytes{0});
  expect_refused("cuDevicePrimaryCtxGetState", CUDA_ERROR_INVALID_DEVICE);
  EXPECT_TRUE(memory_blocks(7).empty());
}

/// A budget of 8 MiB, and a request by another thread during a driver call in this thread's
/// request.
class PoolsUnderWay : public PoolsInside {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  }
  /// Makes `own`. At its first call of the driver's `name` another thread makes `request`, and gets
  /// as far as it can; it must succeed in the end.
  static void expect_served(const char* name, const std::function<CUresult()>& request,
                            const std::function<void()>& own) {
    CUresult answer = CUDA_ERROR_UNKNOWN;
    Meanwhile other(name, 1, [&] {
      use_device(0);
      answer = request();
    });
    own();
    EXPECT_TRUE(other.has_begun());
    other.end();
    EXPECT_EQ(answer, CUDA_SUCCESS);
  }
};

TEST_F(PoolsUnderWay, ARequestGetsTheRoomThatATrimMakes) {
  const CUmemoryPool pool = default_pool();
  (void)allocate(kBytes, make_stream());  // a page that cannot be released
  ASSERT_EQ(used(), mib(2));
  free(allocate(6 * kMib));
  settle();
  ASSERT_EQ(used(), mib(8));
  expect_served(
      "cuMemFree", [] { return try_allocate(kBytes); },
      [&] { EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS); });
  EXPECT_EQ(statistics().failures, 0U);
}

TEST_F(PoolsUnderWay, ARequestGetsTheRoomThatAnotherPoolReleasesToGrow) {
  const CUstream stream = make_stream();
  (void)allocate(2 * kMib, stream);
  free(allocate(6 * kMib));
  settle();
  ASSERT_EQ(used(), mib(8));
  expect_served(
      "cuMemFree", [&] { return try_allocate(2 * kMib, stream); },
      [] { (void)allocate(3 * kMib); });
  EXPECT_EQ(statistics().failures, 0U);
  EXPECT_LE(used(), mib(8));
}

TEST_F(PoolsUnderWay, ARequestGetsTheRoomThatTheDriverRefusedToAnotherPool) {
  weir::testing::expect_refused("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  weir_standin_set_memory(4 * kMib);
  const CUstream stream = make_stream();
  expect_served(
      "cuMemAlloc", [&] { return try_allocate(4 * kMib, stream); },
      [] { EXPECT_EQ(try_allocate(6 * kMib), CUDA_ERROR_OUT_OF_MEMORY); });
  EXPECT_EQ(statistics().failures, 1U);
}

/// A budget of 8 MiB, full of another pool's memory: another context's, or the one in stream order.
enum class Other { kContext, kStreamOrder, kCuMemAlloc };

/// The full pool's name in the report.
const std::map<Other, const char*> kNames{{Other::kContext, "cuMemAlloc (naive)"},
                                          {Other::kStreamOrder, "stream order (paged)"},
                                          {Other::kCuMemAlloc, "cuMemAlloc (naive)"}};

class PoolsOfOneDevice : public PoolsInside, public ::testing::WithParamInterface<Other> {
 protected:
  void begin(const char* policy, const char* max_wait) {
    ASSERT_NO_FATAL_FAILURE(
        start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_POLICY", policy}, {"WEIR_MAX_WAIT", max_wait}}));
  }
  /// Fills the budget from the other pool, in blocks of `bytes`.
  void fill(std::size_t bytes = 4 * kMib) {
    stream_ = make_stream();
    for (std::size_t i = 0; i < 8 * kMib / bytes; ++i) {
      blocks_.push_back(GetParam() == Other::kStreamOrder ? allocate(bytes, stream_)
                                                          : allocate(bytes));
    }
    owner_ = &arena();
  }
  void keep_all_busy() {
    for (const CUdeviceptr block : blocks_) keep_busy(stream_, block);
  }
  void free_one() {
    const CUdeviceptr block = blocks_.back();
    blocks_.pop_back();
    if (GetParam() == Other::kStreamOrder) {
      free(block, stream_);
    } else {
      free(block);
    }
  }
  void free_all() {
    while (!blocks_.empty()) free_one();
  }
  /// The other pool has the budget cached, or freed while work still uses it.
  void leave_cached() {
    fill();
    free_all();
    settle();
  }
  void leave_awaiting() {
    fill();
    keep_all_busy();
    free_all();
  }
  /// The request that needs the memory, from here on.
  void change_pool() {
    if (GetParam() == Other::kContext) (void)make_context();
  }
  static CUresult ask(std::size_t bytes = 6 * kMib) {
    CUdeviceptr block = 0;
    const CUresult code = GetParam() == Other::kCuMemAlloc ? cuMemAllocAsync(&block, bytes, nullptr)
                                                           : cuMemAlloc(&block, bytes);
    if (code == CUDA_SUCCESS) {
      EXPECT_EQ(cuMemsetD8(block, 1, bytes), CUDA_SUCCESS);
    }
    return code;
  }
  Arena* owner_ = nullptr;
  CUstream stream_ = nullptr;

 private:
  std::vector<CUdeviceptr> blocks_;
};

TEST_P(PoolsOfOneDevice, OneGetsWhatAnotherKeeps) {
  ASSERT_NO_FATAL_FAILURE(begin("throttled", "3600s"));
  leave_cached();
  ASSERT_EQ(used(), mib(8));
  ASSERT_NO_FATAL_FAILURE(change_pool());
  EXPECT_EQ(ask(), CUDA_SUCCESS);
  EXPECT_EQ(statistics().failures, 0U);
  EXPECT_EQ(arena().statistics().waits, 0U);
  EXPECT_EQ(weir_standin_peak(0), 8 * kMib);
}

TEST_P(PoolsOfOneDevice, OneGetsWhatAnotherKeepsUnderUnboundedToo) {
  ASSERT_NO_FATAL_FAILURE(begin("unbounded", "3600s"));
  leave_cached();
  ASSERT_NO_FATAL_FAILURE(change_pool());
  EXPECT_EQ(ask(), CUDA_SUCCESS);
  EXPECT_EQ(statistics().failures, 0U);
}

TEST_P(PoolsOfOneDevice, OneWaitsForWhatAnotherFreed) {
  ASSERT_NO_FATAL_FAILURE(begin("backstop", "3600s"));
  leave_awaiting();
  ASSERT_NO_FATAL_FAILURE(change_pool());
  release_while_waiting(stream_, [] { EXPECT_EQ(ask(), CUDA_SUCCESS); });
  EXPECT_EQ(arena().statistics().failures, 0U);
  EXPECT_GE(arena().statistics().waits, 1U);
  EXPECT_EQ(weir_standin_peak(0), 8 * kMib);
}

TEST_P(PoolsOfOneDevice, UnboundedDoesNotWaitForWhatAnotherFreed) {
  ASSERT_NO_FATAL_FAILURE(begin("unbounded", "3600s"));
  leave_awaiting();
  ASSERT_NO_FATAL_FAILURE(change_pool());
  EXPECT_EQ(ask(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena().statistics().failures, 1U);
  EXPECT_EQ(arena().statistics().waits, 0U);
}

TEST_P(PoolsOfOneDevice, AWaitInVainEndsAndTheFailureIsCountedOnceAndNamesAllPools) {
  ASSERT_NO_FATAL_FAILURE(begin("throttled", "50ms"));
  const weir::testing::LogCapture log;
  leave_awaiting();
  ASSERT_NO_FATAL_FAILURE(change_pool());
  EXPECT_EQ(ask(), CUDA_ERROR_OUT_OF_MEMORY);
  std::uint64_t failures = arena().statistics().failures;
  if (owner_ != &arena()) failures += owner_->statistics().failures;
  EXPECT_EQ(failures, 1U);
  ASSERT_EQ(log.containing("printed once").size(), 1U);
  EXPECT_THAT(log.containing("printed once").front(),
              HasSubstr("pool of " + std::string(kNames.at(GetParam())) +
                        ": reserved 8 MiB = allocated 0 B + "));
  EXPECT_EQ(arena().statistics().reserved.current, owner_ == &arena() ? mib(8) : Bytes{});
}

TEST_P(PoolsOfOneDevice, WhatIsHandedOutIsNotWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(begin("throttled", "3600s"));
  fill(kMib);
  keep_all_busy();
  ASSERT_NO_FATAL_FAILURE(change_pool());
  EXPECT_EQ(ask(2 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena().statistics().waits, 0U);
}

TEST_P(PoolsOfOneDevice, WhatWouldNotMakeRoomIsKept) {
  ASSERT_NO_FATAL_FAILURE(begin("throttled", "3600s"));
  fill(2 * kMib);
  free_one();
  settle();
  ASSERT_NO_FATAL_FAILURE(change_pool());
  weir_standin_clear_counters();
  EXPECT_EQ(ask(4 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(used(), mib(8));
  EXPECT_EQ(weir_standin_used(0), 8 * kMib);
}

TEST_P(PoolsOfOneDevice, WhileAStreamIsCapturedNothingOfItsContextIsGivenBack) {
  ASSERT_NO_FATAL_FAILURE(begin("throttled", "3600s"));
  leave_cached();
  // With room for as much again, the cache stays when the capture begins.
  ASSERT_EQ(arena().pool().release(mib(4), true), mib(4));
  const CUstream stream = make_stream();
  begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_NO_FATAL_FAILURE(change_pool());
  weir_standin_clear_counters();
  EXPECT_EQ(ask(), CUDA_ERROR_OUT_OF_MEMORY);
  for (const char* call : {"cuMemFree", "cuMemUnmap", "cuMemRelease"}) {
    EXPECT_EQ(weir_standin_calls(call), 0U) << call;
  }
  EXPECT_GE(weir_standin_used(0), 4 * kMib);
  end_capture(stream);
  EXPECT_EQ(ask(), CUDA_SUCCESS);
}

constexpr const char* kOthers[] = {"AnotherContext", "StreamOrder", "CuMemAlloc"};
INSTANTIATE_TEST_SUITE_P(Others, PoolsOfOneDevice,
                         ::testing::Values(Other::kContext, Other::kStreamOrder,
                                           Other::kCuMemAlloc),
                         [](const auto& other) { return kOthers[static_cast<int>(other.param)]; });

}  // namespace
}  // namespace weir::preload::testing
