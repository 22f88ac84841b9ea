// Very many streams and threads, existing or ended: their cost in driver calls and host bytes must
// not depend on their number.

#include <malloc.h>

#include <algorithm>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/host_bytes.hpp"
#include "tests/support/sanitized.hpp"

namespace weir::preload::testing {
namespace {

constexpr int kVeryMany = WEIR_TEST_SANITIZED != 0 ? 2'000 : 100'000;
/// On a stand-in whose streams are threads.
constexpr int kAlive = WEIR_TEST_SANITIZED != 0 ? 300 : 3'000;
constexpr std::size_t kGib = std::size_t{1} << 30;

class Turnover : public Inside {
 protected:
  /// On a device with so much memory that frees may wait for others, and no memory behind
  /// addresses.
  static void start_large(Variables variables = {}) {
    std::vector all(variables);
    all.emplace_back("WEIR_STANDIN_MEMORY", "80G");
    all.emplace_back("WEIR_STANDIN_ADDRESSES_ONLY", "1");
    start_with(all);
    mallopt(M_ARENA_MAX, 1);  // what threads take is counted, too
  }
  static void make_streams(int count, unsigned flags = CU_STREAM_NON_BLOCKING) {
    for (int i = 0; i < count; ++i) (void)make_stream(flags);
  }
  static void pair() { free(allocate(kBytes)); }
  static void pairs(int count) {
    for (int i = 0; i < count; ++i) pair();
  }
  /// Driver calls of each of `count` operations.
  template <typename Operation>
  [[nodiscard]] static double calls_of(int count, const Operation& operation) {
    weir_standin_clear_counters();
    for (int i = 0; i < count; ++i) operation();
    return static_cast<double>(calls()) / count;
  }
  /// For pairs, the minimum of several runs: on a busy machine a query is sometimes repeated, while
  /// the cost of each pair shows in every run.
  [[nodiscard]] static double calls_of_pairs() {
    double least = calls_of(64, pair);
    for (int i = 0; i < 4; ++i) least = std::min(least, calls_of(64, pair));
    return least;
  }
  /// A stream that has a block, works and ends; nobody waits for it.
  static void come_and_go() {
    const CUstream stream = make_stream();
    const CUdeviceptr block = allocate(kBytes, stream);
    EXPECT_EQ(cuLaunchHostFunc(
                  stream, [](void*) {}, nullptr),
              CUDA_SUCCESS);
    free(block, stream);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  }
  /// Returns the number of the stream's next fence. Adds a point to it.
  [[nodiscard]] static std::uint64_t next_fence(StreamId stream) {
    return arena().fences().record(stream).sequence;
  }
  /// So many of them, with the device never far behind.
  static void many_come_and_go(int streams) {
    for (int i = 1; i <= streams; ++i) {
      come_and_go();
      if (i % 50 != 0) continue;
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    settle();
  }
  static void use_own_stream() {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    free(allocate(kBytes, CU_STREAM_PER_THREAD), CU_STREAM_PER_THREAD);
  }
  static void threads_come_and_go(int threads) {
    for (int i = 1; i <= threads; ++i) {
      std::thread(use_own_stream).join();
      if (i % 40 != 0) continue;
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
  }
};

TEST_F(Turnover, StreamsThatAreGoneCostNeitherCallsNorMemory) {
  ASSERT_NO_FATAL_FAILURE(start_large());
  pairs(100);
  const double before = calls_of_pairs();
  many_come_and_go(kVeryMany / 10);
  const std::size_t host = weir::testing::host_bytes();
  weir_standin_clear_counters();
  many_come_and_go(kVeryMany);
  EXPECT_LE(calls() / static_cast<std::uint64_t>(kVeryMany), 20U) << "for each stream";
  EXPECT_LE(arena().fences().streams(), 4 * FollowedStreams::kFewStreams);
  if (WEIR_TEST_SANITIZED == 0) {
    EXPECT_LE(weir::testing::host_bytes(), host + 4 * kMib) << "42 bytes for each stream";
  }
  settle();
  pairs(100);
  EXPECT_LE(calls_of_pairs(), before);
}

TEST_F(Turnover, ThreadsThatAreGoneCostNeitherCallsNorMemory) {
  ASSERT_NO_FATAL_FAILURE(start_large());
  pairs(100);
  const double before = calls_of_pairs();
  threads_come_and_go(kVeryMany / 10);
  const std::size_t host = weir::testing::host_bytes();
  threads_come_and_go(kVeryMany);
  EXPECT_LE(arena().fences().streams(), 4 * FollowedStreams::kFewStreams);
  if (WEIR_TEST_SANITIZED == 0) {
    EXPECT_LE(weir::testing::host_bytes(), host + 4 * kMib) << "42 bytes for each thread";
  }
  pairs(100);
  settle();
  EXPECT_LE(calls_of_pairs(), before);
  const StreamId everything = arena().fences().everything();
  const std::uint64_t fence = next_fence(everything);
  weir_standin_clear_counters();
  pairs(10'000);
  EXPECT_GT(next_fence(everything), fence + 1);
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 0U) << "as while their work is under way";
}

// As with side streams that are made anew for each step, while the host is ahead of the device.
TEST_F(Turnover, NewStreamsTakeOverWhatOthersHaveFreedRatherThanEachHavingItsOwn) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream main = make_stream();
  hold(main);
  const CUevent event = make_event();
  for (int i = 0; i < 20; ++i) {
    const CUstream side = make_stream();
    ASSERT_EQ(cuEventRecord(event, main), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(side, event, 0), CUDA_SUCCESS);
    const CUdeviceptr block = allocate(8 * kMib, side);
    ASSERT_EQ(cuMemsetD8Async(block, 1, 8 * kMib, side), CUDA_SUCCESS);
    free(block, side);
  }
  EXPECT_LE(weir_standin_peak(0), 16 * kMib);
  EXPECT_EQ(statistics().waits, 0U);
  settle();
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

// So far behind that none is passed at once, and all are when somebody synchronizes.
TEST_F(Turnover, ThreadsThatAreGoneAreForgottenThoughTheDeviceIsBehind) {
  ASSERT_NO_FATAL_FAILURE(start_large());
  weir_standin_delay(weir_standin_all_streams(), 50'000);
  threads_come_and_go(kVeryMany / 5);
  EXPECT_LE(arena().fences().streams(), 4 * FollowedStreams::kFewStreams);
  weir_standin_delay(weir_standin_all_streams(), 0);
}

TEST_F(Turnover, WorkOfAThreadThatIsGoneIsAwaitedUntilTheDeviceHasPassedIt) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr block = allocate(2 * kBytes);
  on_another_thread([&] { keep_busy(CU_STREAM_PER_THREAD, block); });
  // Beside work of a stream that has a name, which is over first.
  const CUstream other = make_stream(CU_STREAM_DEFAULT);
  keep_busy(other, allocate(kBytes));
  free(block);
  EXPECT_FALSE(is_handed_out(block, 2 * kBytes));
  weir_standin_release(other);
  EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  EXPECT_FALSE(is_handed_out(block, 2 * kBytes));
  EXPECT_FALSE(is_handed_out(block, 2 * kBytes)) << "nor behind a second fence";
}

// Each kept 45 kB in `best_fit`.
TEST_F(Turnover, ABlockThatOutlivesItsStreamKeepsLittleOfIt) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer keeps what is freed";
  ASSERT_NO_FATAL_FAILURE(start_large({{"WEIR_POOL", "best_fit"}}));
  const auto keep_one = [] {
    const CUstream stream = make_stream();
    (void)allocate(512, stream);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  };
  for (int i = 0; i < 100; ++i) keep_one();
  const std::size_t before = weir::testing::host_bytes();
  for (int i = 0; i < 2000; ++i) keep_one();
  EXPECT_LE(weir::testing::host_bytes(), before + std::size_t{2000} * 4096);
}

TEST_F(Turnover, TheEndOfAStreamAsksNoOther) {
  ASSERT_NO_FATAL_FAILURE(start());
  make_streams(200);
  make_streams(200, CU_STREAM_DEFAULT);
  weir_standin_clear_counters();
  for (int i = 0; i < 100; ++i) come_and_go();
  EXPECT_LE(weir_standin_calls("cuStreamQuery"), 200U);
}

TEST_F(Turnover, FreesInTheOrderOfAStreamAskNoOther) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const unsigned flags : {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT}) {
    const CUstream stream = make_stream(flags);
    make_streams(200, flags);
    const auto in_order = [stream] { free(allocate(kBytes, stream), stream); };
    for (int i = 0; i < 64; ++i) in_order();
    const StreamId id = arena().fences().find(stream, false);
    const std::uint64_t before = next_fence(id);
    EXPECT_LE(calls_of(128, in_order), 1);
    if (flags != CU_STREAM_NON_BLOCKING) continue;  // that may be behind the legacy stream's work
    const std::uint64_t queries = weir_standin_calls("cuStreamQuery");
    EXPECT_LE(queries, next_fence(id) - before);
  }
}

TEST_F(Turnover, APairAsksFewStreamsHoweverManyThereAre) {
  ASSERT_NO_FATAL_FAILURE(start_large());
  for (const int streams : {100, kAlive}) {
    make_streams(streams);
    constexpr int kPairs = 4 * kAlive;
    pairs(kPairs);  // grows as far as it does
    weir_standin_clear_counters();
    pairs(kPairs);
    EXPECT_LE(weir_standin_calls("cuStreamQuery"), std::uint64_t{kPairs});
    EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 0U);
  }
}

TEST_F(Turnover, MemoryThatWaitsForFewerQuestionsIsASmallPartOfTheBudget) {
  ASSERT_NO_FATAL_FAILURE(start_large({{"WEIR_BUDGET", "64GiB"}}));
  make_streams(200);
  for (int i = 0; i < 100; ++i) free(allocate(256 * kMib));
  EXPECT_LE(statistics().reserved.current.count, kGib + 256 * kMib);
}

TEST_F(Turnover, StreamsAreAskedWhereNoMoreMemoryCanBeHad) {
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "256MiB"}, {"WEIR_POOL", "naive"}, {"WEIR_POLICY", "unbounded"}}));
  make_streams(200);
  const CUdeviceptr most = allocate(254 * kMib);
  for (int i = 0; i < 50; ++i) free(allocate(2 * kMib));
  free(most);
}

TEST_F(Turnover, StreamsAreAskedWhereTheDriverRefuses) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POLICY", "unbounded"}}));
  make_streams(200);
  const CUdeviceptr block = allocate(kBytes);
  weir_standin_fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinFromThenOn);
  free(block);
  for (int i = 0; i < 50; ++i) pair();
  weir_standin_clear_faults();
}

TEST_F(Turnover, LaunchesOnManyStreamsInTurnLookAtNone) {
  ASSERT_NO_FATAL_FAILURE(start());
  std::vector<CUstream> streams;
  for (int i = 0; i < 1000; ++i) streams.push_back(make_stream());
  expect_refused("cuLaunchKernel", CUDA_ERROR_INVALID_HANDLE);
  weir_standin_clear_counters();
  for (int round = 0; round < 10; ++round) {
    for (const CUstream stream : streams) {
      EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                CUDA_ERROR_INVALID_HANDLE);
    }
  }
  EXPECT_LE(weir_standin_calls("cuCtxGetCurrent"), 10'000U / 32 + 100);
}

/// A stream that has ended with held work, and blocks that are freed afterwards.
class BehindAStreamThatIsGone : public Turnover {
 protected:
  static void leave_late() {
    const CUstream late = make_stream();
    weir_standin_hold(weir_standin_all_streams());
    EXPECT_EQ(cuMemsetD8Async(allocate(kBytes), 1, 1, late), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(late), CUDA_SUCCESS);
  }
  /// The second of two fences on everything.
  [[nodiscard]] static Point second_fence() {
    Fences& fences = arena().fences();
    Point point;
    for (int i = 0; i < 2; ++i) {
      point = fences.record(fences.everything());
      fences.fence(fences.everything());
    }
    return point;
  }
};

TEST_F(BehindAStreamThatIsGone, IsEachFenceOnEverything) {
  ASSERT_NO_FATAL_FAILURE(start());
  leave_late();
  const Point point = second_fence();
  EXPECT_FALSE(arena().fences().reached(point));
  settle();
  EXPECT_TRUE(arena().fences().reached(point));
}

TEST_F(BehindAStreamThatIsGone, IsWhoeverWaitsOnTheDeviceForEverything) {
  ASSERT_NO_FATAL_FAILURE(start());
  leave_late();
  const Point point = second_fence();
  const StreamId next = arena().fences().find(make_stream(), false);
  weir_standin_clear_counters();
  arena().fences().make_wait(next, point);
  EXPECT_EQ(weir_standin_calls("cuStreamWaitEvent"), 1U);
  settle();
}

}  // namespace
}  // namespace weir::preload::testing
