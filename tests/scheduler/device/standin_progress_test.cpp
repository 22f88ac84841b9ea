// Streams of the program, followed by a CudaProgress and used with a pool.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "allocator/pool.hpp"
#include "scheduler/device/standin_fixture.hpp"
#include "support/gate.hpp"
#include "support/options_of.hpp"
#include "support/refused.hpp"

namespace weir {
namespace {

using testing::options_of;
using testing::UserStream;

class CudaProgressTest : public testing::StandinTest {
 protected:
  void TearDown() override {
    weir_standin_release(weir_standin_all_streams());
    for (const StreamId id : {a, b}) progress.remove(id);
  }
  UserStream first;
  UserStream second;
  CudaUpstream upstream{0};
  CudaProgress progress{0};
  const StreamId a = progress.add(first.get());
  const StreamId b = progress.add(second.get());
};

/// Work that Weir does not see.
void set_late(cudaStream_t stream, void* to, int value) {
  EXPECT_EQ(cudaMemsetAsync(to, value, 512, stream), cudaSuccess);
}

TEST_F(CudaProgressTest, APointCoversWorkThatNobodyAnnounced) {
  void* const block = upstream.allocate({512});
  weir_standin_hold(first.get());
  set_late(first.get(), block, 1);
  const Point point = progress.record(a);
  testing::give_others_a_chance();
  EXPECT_FALSE(progress.reached(point));
  weir_standin_release(first.get());
  EXPECT_TRUE(progress.wait(point, {}));
  EXPECT_TRUE(progress.reached(point));
  upstream.deallocate(block, {512});
}

TEST_F(CudaProgressTest, APoolReusesOnItsOwnStreamAndWaitsForOthers) {
  Pool pool({upstream, progress}, options_of(kib(8)));
  void* const x = pool.allocate(kib(4), a);
  weir_standin_hold(second.get());
  set_late(second.get(), x, 1);
  pool.record_use(x, b);
  EXPECT_EQ(pool.deallocate(x, a), Freed::kAwaiting);
  void* const y = pool.allocate(kib(4), a);
  EXPECT_NE(y, x) << "the second stream has not passed its use";
  weir_standin_release(second.get());
  EXPECT_TRUE(progress.wait(progress.record(b), {}));
  pool.poll();
  void* const z = pool.allocate(kib(4), a);
  EXPECT_EQ(z, x);
  pool.deallocate(y, a);
  pool.deallocate(z, a);
}

TEST_F(CudaProgressTest, AHandoverHoldsTheOtherStreamBackOnTheDevice) {
  Pool pool({upstream, progress}, options_of(kib(4)));
  auto* const x = static_cast<unsigned char*>(pool.allocate(kib(4), a));
  weir_standin_hold(first.get());
  set_late(first.get(), x, 1);
  pool.deallocate(x, a);
  auto* const y = static_cast<unsigned char*>(pool.allocate(kib(4), b));
  ASSERT_EQ(y, x);
  EXPECT_EQ(pool.statistics().handovers, 1U);
  set_late(second.get(), y, 2);
  testing::give_others_a_chance();
  weir_standin_release(first.get());
  EXPECT_TRUE(progress.wait(progress.record(b), {}));
  EXPECT_EQ(y[0], 2) << "the first stream wrote after the second";
  pool.deallocate(y, b);
}

TEST_F(CudaProgressTest, APointCostsNoCallOfCudaUntilSomebodyAsks) {
  weir_standin_hold(first.get());
  weir_standin_clear_counters();
  Point last{};
  for (std::uint32_t i = 1; i < FollowedCudaStream::kPointsOfAnEvent; ++i)
    last = progress.record(a);
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 0U);
  EXPECT_EQ(weir_standin_calls("cuEventQuery"), 0U);
  EXPECT_EQ(weir_standin_calls("cuStreamIsCapturing"), 0U);
  EXPECT_FALSE(progress.reached(last));
  EXPECT_FALSE(progress.reached(last));
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 1U) << "one event for all of them";
  weir_standin_release(first.get());
  EXPECT_TRUE(progress.wait(last, {}));
}

TEST_F(CudaProgressTest, SoManyPointsShareAnEventThatIsUsedAgainThoughNobodyAsks) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(cudaStreamSynchronize(first.get()), cudaSuccess);
    for (std::uint32_t k = 0; k < FollowedCudaStream::kPointsOfAnEvent; ++k)
      (void)progress.record(a);
  }
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 10U);
  EXPECT_LE(weir_standin_calls("cuEventCreate"), 2U);
}

TEST_F(CudaProgressTest, EarlierPointsArePassedBeforeWorkBehindTheirEvent) {
  Point early{};
  for (std::uint32_t i = 0; i < FollowedCudaStream::kPointsOfAnEvent; ++i)
    early = progress.record(a);
  void* const block = upstream.allocate({512});
  // Their event has passed: a held stream goes no further.
  ASSERT_EQ(cudaStreamSynchronize(first.get()), cudaSuccess);
  weir_standin_hold(first.get());
  set_late(first.get(), block, 1);
  const Point late = progress.record(a);
  EXPECT_TRUE(progress.wait(early, {}));
  EXPECT_FALSE(progress.reached(late));
  weir_standin_release(first.get());
  EXPECT_TRUE(progress.wait(late, {}));
  upstream.deallocate(block, {512});
}

TEST_F(CudaProgressTest, EventsAreUsedAgain) {
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(progress.wait(progress.record(a), {}));
  EXPECT_LE(weir_standin_calls("cuEventCreate"), 2U);
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 300U);
}

TEST_F(CudaProgressTest, NoEventIsBlockingSinceNobodySleepsOnIt) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(progress.wait(progress.record(a), {}));
  progress.make_wait(b, progress.record(a));
  EXPECT_EQ(weir_standin_blocking_records(), 0U);
  EXPECT_EQ(weir_standin_calls("cuEventSynchronize"), 0U);
}

/// Work whose end its stream's owner is told.
struct MarkedStreamTest : testing::StandinTest, CudaCompletion {
  void completed(void* /*tag*/, const CudaWorkTime& /*time*/) noexcept override { ++told; }
  /// Enqueues so many copies of a byte, and marks each.
  void enqueue(int copies) {
    for (int i = 0; i < copies; ++i) {
      followed.expect_mark();
      EXPECT_EQ(cudaMemsetAsync(block, i, 1, stream.get()), cudaSuccess);
      (void)followed.mark(block, std::chrono::steady_clock::now());
    }
  }
  UserStream stream;
  CudaUpstream upstream{0};
  void* const block = upstream.allocate({512});
  FollowedCudaStream followed{StreamId::next(), 0, stream.get(), CudaWork::kMarked, this};
  int told = 0;
};

// An event to sleep on behind each took the device as long again as a small kernel.
TEST_F(MarkedStreamTest, ShortWorkSharesAnEventToSleepOn) {
  enqueue(100);  // their time becomes known
  followed.drain();
  weir_standin_clear_counters();
  const std::uint64_t before = weir_standin_blocking_records();
  const auto mean = followed.busy() / told;
  weir_standin_hold(stream.get());
  enqueue(200);
  const std::uint64_t to_sleep_on = weir_standin_blocking_records() - before;
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 200U) << "another stream may wait for each";
  EXPECT_LE(to_sleep_on, 200U * static_cast<std::uint64_t>(4 * mean / SleepSpacing::kApart + 1));
  EXPECT_LT(to_sleep_on, 200U) << "this machine takes " << mean.count() << " ns for each";
  weir_standin_release(stream.get());
  followed.drain();
  EXPECT_EQ(told, 300);
  upstream.deallocate(block, {512});
}

// An H100's queue took 56, and the call that enqueued the next one waited until the device had come
// so far: for ever, if that needed the caller.
TEST_F(MarkedStreamTest, WorkOfUnknownLengthHasFewEventsToSleepOn) {
  weir_standin_hold(stream.get());
  enqueue(200);
  EXPECT_LE(weir_standin_blocking_records(), SleepSpacing::kMost);
  weir_standin_release(stream.get());
  followed.drain();
  EXPECT_EQ(told, 200);
  upstream.deallocate(block, {512});
}

TEST_F(MarkedStreamTest, SleepsUntilTheLastWorkEvenIfThatHasNoEventToSleepOn) {
  enqueue(100);
  followed.drain();
  for (int last = 1; last <= 20; ++last) {
    enqueue(last);
    while (followed.await_oldest()) continue;
    EXPECT_EQ(followed.passed(), followed.marked());
  }
  EXPECT_EQ(told, 100 + 20 * 21 / 2);
  upstream.deallocate(block, {512});
}

TEST_F(CudaProgressTest, TheEventsHaveNoTiming) {
  testing::expect_refused("cuEventElapsedTime", cudaErrorInvalidResourceHandle);
  cudaEvent_t timed = nullptr;
  ASSERT_EQ(cudaEventCreate(&timed), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(timed, first.get()), cudaSuccess);
  CudaEvents events(CudaEventCalls(0, CudaEventWait::kSpins));
  CudaEvents::Events made;
  ASSERT_EQ(events.record(made, first.get()), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(made.front()), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(take_cuda_error(cudaEventElapsedTime(&milliseconds, timed, made.front())),
            cudaErrorInvalidResourceHandle);
  events.give_back(made);
  EXPECT_EQ(events.keep(0), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(timed), cudaSuccess);
}

TEST_F(CudaProgressTest, AStreamThatIsGoneHasPassedItsPoints) {
  Pool pool({upstream, progress}, options_of(kib(8)));
  void* x = nullptr;
  {
    const UserStream third;
    const StreamId c = progress.add(third.get());
    x = pool.allocate(kib(4), c);
    weir_standin_hold(third.get());
    set_late(third.get(), x, 1);
    pool.deallocate(x, c);
    const Point last = progress.record(c);
    std::thread releaser([&] {
      testing::give_others_a_chance();
      weir_standin_release(third.get());
    });
    progress.remove(c);
    EXPECT_TRUE(progress.reached(last));
    releaser.join();
  }
  EXPECT_EQ(pool.allocate(kib(4), a), x) << "another stream may have what it left";
  pool.deallocate(x, a);
}

TEST_F(CudaProgressTest, AnswersManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (const StreamId id : {a, b, a, b}) {
    threads.emplace_back([this, id] {
      for (int i = 0; i < 200; ++i) {
        const Point point = progress.record(id);
        if (i % 2 == 0) progress.make_wait(id == a ? b : a, point);
        EXPECT_TRUE(progress.wait(point, {}));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

// ---- Capture. A captured stream runs nothing: it only records.

class Invariant10 : public CudaProgressTest {};

TEST_F(Invariant10, AFreeDuringACaptureIsParkedAndHarmsNothing) {
  Pool pool({upstream, progress}, options_of(kib(8)));
  void* const x = pool.allocate(kib(4), a);
  testing::Capture capture(first.get());
  set_late(first.get(), x, 1);
  const Point during = progress.record(a);
  EXPECT_FALSE(progress.reached(during));
  EXPECT_THROW((void)progress.wait(during, {}), CudaError) << "no event can be recorded now";
  pool.deallocate(x, a);
  pool.poll();
  EXPECT_EQ(pool.trim(), Bytes{});
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(first.get(), &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive) << "the capture was broken";
  (void)capture.end();
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 0U);
  EXPECT_TRUE(progress.wait(during, {}));
  EXPECT_TRUE(progress.wait(progress.record(a), {}));
  EXPECT_EQ(pool.trim(), kib(4));
}

TEST_F(Invariant10, ABlockIsNotHandedOverToAStreamThatIsCaptured) {
  Pool pool({upstream, progress}, options_of(kib(4)));
  void* const x = pool.allocate(kib(4), b);
  weir_standin_hold(second.get());
  set_late(second.get(), x, 1);
  pool.deallocate(x, b);
  testing::Capture capture(first.get());
  EXPECT_THROW((void)pool.allocate(kib(4), a), CudaError);
  EXPECT_EQ(pool.statistics().handovers, 0U);
  weir_standin_release(second.get());
}

TEST_F(Invariant10, AnEventThatFellIntoACaptureIsNeverAskedFor) {
  const Point point = progress.record(a);
  // As if a capture had begun between the first check and the event.
  fail("cuStreamIsCapturing", 2, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_FALSE(progress.reached(point));
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 1U);
  EXPECT_EQ(weir_standin_calls("cuEventQuery"), 0U);
  EXPECT_TRUE(progress.wait(point, {})) << "by another event";
}

TEST_F(Invariant10, AnEventOfACaptureThatIsOverIsRecordedAgain) {
  const Point point = progress.record(a);
  fail("cuEventQuery", 1, CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_FALSE(progress.reached(point));
  EXPECT_TRUE(progress.wait(point, {}));
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 2U);
  EXPECT_LE(weir_standin_calls("cuEventCreate"), 1U);
}

TEST_F(CudaProgressTest, RefusesANameOfADefaultStreamThatMeansSeveral) {
  for (cudaStream_t stream : {cudaStream_t{}, cudaStreamPerThread}) {
    EXPECT_THROW((void)progress.add(stream), UsageError);
  }
}

TEST_F(Invariant10, SomebodyElsesGlobalCaptureSurvivesOurCalls) {
  Pool pool({upstream, progress}, options_of(kib(8)));
  PinnedUpstream pinned(0, mib(1));
  weir_standin_hold(second.get());
  void* const before = pool.allocate(kib(4), b);
  set_late(second.get(), before, 1);
  const Point point = progress.record(b);
  testing::Capture capture(first.get());
  std::thread other([&] {
    void* const x = pool.allocate(kib(4), b);  // cudaMalloc
    pool.deallocate(x, b);
    void* const host = pinned.allocate(kib(4));  // cudaHostAlloc
    EXPECT_NE(host, nullptr);
    EXPECT_FALSE(progress.reached(point));  // cudaEventQuery
    weir_standin_release(second.get());
    EXPECT_TRUE(progress.wait(point, {}));
    pool.deallocate(before, b);
    EXPECT_TRUE(progress.wait(progress.record(b), {}));
    EXPECT_EQ(pool.trim(), kib(8));  // cudaFree
    pinned.deallocate(host, kib(4));
  });
  other.join();
}

}  // namespace
}  // namespace weir
