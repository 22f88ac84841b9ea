// cuMemAllocAsync and cuMemFreeAsync: who may reuse a block, and when.

#include <array>
#include <string>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class Async : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start()); }
  static void use(CUdeviceptr block, CUstream stream) {
    EXPECT_EQ(cuMemsetD32Async(block, 7, kBytes / 4, stream), CUDA_SUCCESS);
  }
  /// All memory that was freed and passed can be allocated again without the driver.
  static void expect_cached_after_settling(std::uint64_t bytes) {
    settle();
    EXPECT_EQ(statistics().awaiting.current, Bytes{});
    EXPECT_GE(statistics().cached.current, Bytes{bytes});
  }
};
class AsyncUnder : public Async {
  void SetUp() override {}
};

TEST_F(Async, AStreamReusesItsOwnBlockWithoutACallOfTheDriver) {
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  keep_busy(stream, block);
  weir_standin_clear_counters();
  for (int i = 0; i < 20; ++i) {
    free(block, stream);
    EXPECT_EQ(allocate(kBytes, stream), block);
  }
  EXPECT_EQ(calls(), 0U);
}

enum class On { kEverything, kHome, kOther, kBlocking, kLegacy };
struct Way {
  const char* name;
  On home;  ///< where it was allocated; `kEverything`: by cuMemAlloc
  On used;
  On freed;  ///< `kEverything`: by cuMemFree
};
class AsyncFree : public Async, public ::testing::WithParamInterface<Way> {};

TEST_P(AsyncFree, GivesNobodyTheBlockEarly) {
  const std::array streams{CUstream{}, make_stream(), make_stream(), make_stream(CU_STREAM_DEFAULT),
                           CU_STREAM_LEGACY};
  const auto of = [&](On on) { return streams.at(static_cast<std::size_t>(on)); };
  const auto& [name, home, used, freed] = GetParam();
  const CUdeviceptr block = home == On::kEverything ? allocate(kBytes) : allocate(kBytes, of(home));
  keep_busy(of(used), block);
  if (freed == On::kEverything) {
    free(block);
  } else {
    free(block, of(freed));
  }
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  EXPECT_FALSE(is_handed_out(block, kBytes));
  EXPECT_FALSE(used == On::kOther && is_handed_out(block, kBytes, of(On::kHome)));
  expect_cached_after_settling(kBytes);
  if (used == On::kOther) {
    EXPECT_TRUE(is_handed_out(block, kBytes, of(On::kHome), 5));
  }
}

// The default stream and blocking streams wait for each other, so a free on one of them follows the
// other's work, even without work of its own.
INSTANTIATE_TEST_SUITE_P(
    Ways, AsyncFree,
    ::testing::Values(Way{"OfItsOwnStream", On::kHome, On::kHome, On::kHome},
                      Way{"OnAnotherStreamThatWorks", On::kHome, On::kOther, On::kOther},
                      Way{"OnAnotherStreamWhileItsHomeWorks", On::kHome, On::kHome, On::kOther},
                      Way{"OnABlockingStreamWhileTheDefaultStreamWorks", On::kBlocking, On::kLegacy,
                          On::kBlocking},
                      Way{"OnTheDefaultStreamWhileABlockingOneWorks", On::kLegacy, On::kBlocking,
                          On::kLegacy},
                      Way{"OfCuMemAllocInStreamOrder", On::kEverything, On::kHome, On::kHome},
                      Way{"InStreamOrderByCuMemFree", On::kHome, On::kHome, On::kEverything}),
    [](const auto& way) { return std::string(way.param.name); });

TEST_F(Async, PyTorchsEventsAndWaitsGiveNoEarlyReuse) {
  const CUstream home = make_stream();
  const CUstream side = make_stream();
  const CUstream freeing = make_stream();
  const CUdeviceptr block = allocate(kBytes, home);
  use(block, home);
  // The program orders the streams this way; a fence of ours does not.
  ASSERT_EQ(cuStreamSynchronize(home), CUDA_SUCCESS);
  // As a framework frees memory that a side stream used: behind an event of that stream, on a third
  // stream.
  const CUevent event = make_event();
  keep_busy(side, block);
  ASSERT_EQ(cuEventRecord(event, side), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(freeing, event, 0), CUDA_SUCCESS);
  free(block, freeing);
  ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  EXPECT_FALSE(is_handed_out(block, kBytes, home));
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  EXPECT_FALSE(is_handed_out(block, kBytes));
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, AStreamThatIsDestroyedLeavesItsBlocksBehindItsWork) {
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  const CUdeviceptr held = allocate(2 * kBytes, stream);
  weir_standin_hold(weir_standin_all_streams());
  use(block, stream);
  free(block, stream);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  const CUstream next = make_stream();
  EXPECT_FALSE(is_handed_out(block, kBytes, next));
  EXPECT_FALSE(is_handed_out(block, kBytes));
  free(held, next);
  EXPECT_FALSE(is_handed_out(held, 2 * kBytes, make_stream()));
  settle();
  // Four blocks of the same size were the new stream's, and then cuMemAlloc's, since the stream is
  // idle. Anybody may use the memory of the ended stream.
  weir_standin_clear_counters();
  for (int i = 0; i < 5; ++i) (void)allocate(kBytes, next);
  EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 0U);
}

TEST_F(AsyncUnder, EachThreadsDefaultStreamIsAStreamOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "naive"}}));
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocAsync_ptsz(&block, kBytes, nullptr), CUDA_SUCCESS);
  keep_busy(CU_STREAM_PER_THREAD, block);
  ASSERT_EQ(cuMemFreeAsync_ptsz(block, nullptr), CUDA_SUCCESS);
  on_another_thread([&] { EXPECT_FALSE(is_handed_out(block, kBytes, CU_STREAM_PER_THREAD)); });
  EXPECT_FALSE(is_handed_out(block, kBytes, nullptr));
  CUdeviceptr again = 0;
  ASSERT_EQ(cuMemAllocAsync(&again, kBytes, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  EXPECT_EQ(again, block);
}

TEST_F(Async, APoolsPerThreadFormUsesTheThreadsDefaultStream) {
  const CUmemoryPool pool = default_pool();
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync_ptsz(&block, kBytes, pool, nullptr), CUDA_SUCCESS);
  keep_busy(CU_STREAM_PER_THREAD, block);
  ASSERT_EQ(cuMemFreeAsync_ptsz(block, nullptr), CUDA_SUCCESS);
  CUdeviceptr again = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync_ptsz(&again, kBytes, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(again, block);
}

TEST_F(Async, ABlockOfAThreadThatIsGoneAwaitsItsDefaultStream) {
  weir_standin_hold(weir_standin_all_streams());
  CUdeviceptr block = 0;
  on_another_thread([&] {
    block = allocate(kBytes, CU_STREAM_PER_THREAD);
    use(block, CU_STREAM_PER_THREAD);
    free(block, CU_STREAM_PER_THREAD);
  });
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  // The next thread may get the last one's number from the system, but not its blocks.
  on_another_thread([&] { EXPECT_FALSE(is_handed_out(block, kBytes, CU_STREAM_PER_THREAD)); });
  expect_cached_after_settling(kBytes);
}

TEST_F(AsyncUnder, ABlockGoesToAnotherStreamBehindAWaitOnTheDevice) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}}));
  const CUstream first = make_stream();
  const CUstream second = make_stream();
  const CUdeviceptr block = allocate(kMib, first);
  hold(first);
  ASSERT_EQ(cuMemsetD32Async(block, 1, kMib / 4, first), CUDA_SUCCESS);
  free(block, first);
  weir_standin_clear_counters();
  // The first stream never ends its work before this returns, so the host does not wait.
  ASSERT_EQ(allocate(kMib, second), block);
  EXPECT_EQ(weir_standin_calls("cuStreamWaitEvent"), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
  EXPECT_EQ(statistics().handovers, 1U);
  EXPECT_EQ(statistics().waits, 0U);
  ASSERT_EQ(cuMemsetD32Async(block, 2, kMib / 4, second), CUDA_SUCCESS);
  // Gives the second stream time to start its work too early.
  const CUstream third = make_stream();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(cuLaunchHostFunc(
                  third, [](void*) {}, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(third), CUDA_SUCCESS);
  }
  EXPECT_NE(weir_standin_pending(second), 0U);
  settle();
  EXPECT_EQ(*reinterpret_cast<const unsigned*>(block), 2U);
}

}  // namespace
}  // namespace weir::preload::testing
