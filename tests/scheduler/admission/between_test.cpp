// Steps of two threads, or of a thread and the device, between which another one looks. The model
// in tests/models has the same steps.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stop_token>
#include <thread>

#include "allocator/pool.hpp"
#include "scheduler/admission/admission.hpp"
#include "support/manual_progress.hpp"
#include "support/options_of.hpp"

namespace weir {
namespace {

/// One pool and its admission, without a device.
struct Between : ::testing::Test {
  explicit Between(const RunAhead& run_ahead = {})
      : admission(pool, {progress, {stream, other}}, Policy::kThrottled, run_ahead,
                  std::chrono::hours(1)) {}

  SimulatedUpstream upstream{mib(64)};
  testing::ManualProgress progress;
  Pool pool{{upstream, progress}, testing::options_of(mib(4))};
  StreamId stream = StreamId::next();
  StreamId other = StreamId::next();
  Admission admission;
};

// The device passes a batch between two looks of settle(): one at the streams, one of the pool.
TEST_F(Between, ABatchIsSettledOnlyAfterItsFreesHaveReachedThePool) {
  const TicketRef batch = admission.open("train", {.hint = mib(2)});
  batch.ticket->touched = {StreamRole::kCompute, StreamRole::kCompute2};
  void* const block = pool.allocate(mib(2), stream);
  admission.note_allocated(batch, mib(2));
  (void)progress.enqueue(stream);
  (void)progress.enqueue(other);
  pool.record_use(block, other);
  pool.deallocate(block, stream);
  admission.note_freed(batch, mib(2), true);
  admission.close(batch, true);
  ASSERT_EQ(pool.statistics().awaiting.current, mib(2));

  progress.after_query = [&](StreamId asked) {
    if (asked == other) progress.pass_all(other);
    if (asked == other) progress.pass_all(stream);
  };
  for (int looks = 0; looks < 3; ++looks) {
    admission.settle();
    const bool settled = admission.statistics().settled == 1;
    EXPECT_FALSE(settled && pool.statistics().awaiting.current != Bytes{}) << "look " << looks;
  }
  EXPECT_EQ(admission.statistics().settled, 1U);
}

// Nothing else would wake the waiter before the end of its grace, an hour.
TEST_F(Between, BytesThatABatchWasPromisedAndHasTakenCountOnceForWhoeverWaits) {
  const TicketRef open = admission.open("open", {.hint = mib(2)});
  void* const block = pool.allocate(mib(2), stream);

  std::stop_source stop;
  std::future<TicketRef> beside = std::async(std::launch::async, [&] {
    return admission.open("beside", {.hint = mib(2), .stop = stop.get_token()});
  });
  while (admission.statistics().sleeps == 0) std::this_thread::yield();

  admission.note_allocated(open, mib(2));  // held 2, promised 0: there is room now
  // The limit is against a hang alone.
  if (beside.wait_for(std::chrono::minutes(5)) != std::future_status::ready) stop.request_stop();
  TicketRef second;
  EXPECT_NO_THROW(second = beside.get()) << "nobody told it";
  EXPECT_EQ(admission.statistics().forced, 0U);

  pool.deallocate(block, stream);
  admission.note_freed(open, mib(2), false);
  admission.close(open, false);
  if (second.ticket != nullptr) admission.close(second, false);
  admission.settle();
}

/// A thread that begins small batches, and another one that begins a large one meanwhile.
struct BetweenShares : Between {
  BetweenShares() : Between({.batches = 8, .time = std::chrono::nanoseconds(0)}) {}

  void run_small(std::chrono::nanoseconds takes) {
    const TicketRef small = admission.open("small", {.hint = kib(4)});
    admission.note_allocated(small, kib(4));
    admission.note_freed(small, kib(4), false);
    small.ticket->touched = {StreamRole::kCompute};
    small.ticket->note_ran(StreamRole::kCompute, {.device_time = takes});
    (void)progress.enqueue(stream);
    admission.close(small, true);
  }
  /// Begins the large one. Two small ones are submitted, and it is known how long they take.
  std::future<void> begin_large(std::chrono::nanoseconds takes) {
    run_small(takes);
    progress.pass_all(stream);
    for (int i = 0; i < 2; ++i) run_small(takes);
    return std::async(std::launch::async, [this] {
      admission.close(admission.open("large", {.hint = mib(1), .stop = stop.get_token()}), false);
    });
  }

  std::stop_source stop;
};

TEST_F(BetweenShares, ALargeBatchLetsSmallOnesComeBackForATimeAndGoesOnByItself) {
  begin_large(std::chrono::milliseconds(64)).get();
  EXPECT_EQ(admission.statistics().turn.count, 1U);
  EXPECT_EQ(admission.statistics().soft.count, 0U);
}

TEST_F(BetweenShares, SmallOnesThatComeBackGoFirstAndItWaitsForTheNextUntilItIsCancelled) {
  std::future<void> large = begin_large(std::chrono::hours(10'000));
  while (admission.statistics().sleeps < 1) std::this_thread::yield();
  run_small(std::chrono::hours(10'000));
  while (admission.statistics().sleeps < 2) std::this_thread::yield();
  stop.request_stop();
  EXPECT_THROW(large.get(), Cancelled);
}

}  // namespace
}  // namespace weir
