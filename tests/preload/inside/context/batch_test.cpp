// Batches that the program marks.

#include <atomic>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class Batches : public Inside {
 protected:
  /// One batch whose work stays on a held stream.
  static void run_batch(CUstream stream, CUdeviceptr block) {
    ASSERT_TRUE(begin_batch("step"));
    ASSERT_EQ(cuMemsetD8Async(block, 1, 1, stream), CUDA_SUCCESS);
    end_batch();
  }
  static void await_another_question() {
    const std::uint64_t before = weir_standin_calls("cuEventQuery");
    wait_until([&] { return weir_standin_calls("cuEventQuery") > before + 20; });
  }
};

class BatchesOfAThread : public Batches, public ::testing::WithParamInterface<bool> {};

// PyTorch 2.5's set_device(0) leaves a new thread without a context: the runtime's device is 0
// anyway.
TEST_P(BatchesOfAThread, AreHeldBackByThrottledBehindTwoOthers) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_MAX_WAIT", "3600s"}}));
  const CUcontext context = GetParam() ? current() : CUcontext{};
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kMib);
  hold(stream);
  ASSERT_NO_FATAL_FAILURE(run_batch(stream, block));
  ASSERT_NO_FATAL_FAILURE(run_batch(stream, block));
  std::atomic<bool> admitted{false};
  std::thread other([&] {
    if (context != nullptr) {
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    }
    EXPECT_TRUE(begin_batch("step"));
    admitted = true;
    EXPECT_TRUE(begin_batch("inner"));
    end_batch();
    end_batch();
    EXPECT_EQ(current(), context);
  });
  await_another_question();
  EXPECT_FALSE(admitted);
  release_all();
  other.join();
  EXPECT_TRUE(admitted);
  EXPECT_EQ(arena().batches().count(), 3U);
  const AdmissionStatistics held_back = arena().batches().statistics();
  EXPECT_EQ(held_back.budget.count + held_back.soft.count + held_back.turn.count, 1U);
}

INSTANTIATE_TEST_SUITE_P(Contexts, BatchesOfAThread, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& test) {
                           return test.param ? "WithOne" : "WithoutOne";
                         });

TEST_F(Batches, AThreadWithoutAContextBeginsNoneWhileNobodyUsesDevice0) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  EXPECT_NE(allocate(kBytes), 0U);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  std::thread([] {
    EXPECT_FALSE(begin_batch("step"));
    end_batch();
  }).join();
  EXPECT_EQ(arena().batches().count(), 0U);
}

TEST_F(Batches, ABatchGoesOnAfterTheLongestWait) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_MAX_WAIT", "50ms"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kMib);
  hold(stream);
  for (int i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(run_batch(stream, block));
  EXPECT_FALSE(begin_batch("step"));
  end_batch();
  EXPECT_EQ(cuMemsetD8Async(block, 1, 1, stream), CUDA_SUCCESS);
}

TEST_F(Batches, ABatchInsideAnotherJoinsIt) {
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_TRUE(begin_batch("outer"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(begin_batch("inner"));
    end_batch();
  }
  EXPECT_TRUE(begin_batch("inner"));
  EXPECT_TRUE(begin_batch("innermost"));
  end_batch();
  end_batch();
  EXPECT_EQ(arena().batches().count(), 1U);
  end_batch();
  EXPECT_TRUE(begin_batch("next"));
  EXPECT_EQ(arena().batches().count(), 2U);
  end_batch();
}

TEST_F(Batches, AnEndWithoutABeginIsNothing) {
  ASSERT_NO_FATAL_FAILURE(start());
  end_batch();
  EXPECT_TRUE(begin_batch("step"));
  end_batch();
  end_batch();
  EXPECT_EQ(arena().batches().count(), 1U);
}

TEST_F(Batches, BarrierWaitsForTheDeviceAtTheEnd) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POLICY", "barrier"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kMib);
  const CUcontext context = current();
  hold(stream);
  std::atomic<bool> ended{false};
  std::thread other([&] {
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(run_batch(stream, block));
    ended = true;
  });
  await_another_question();
  EXPECT_FALSE(ended);
  weir_standin_release(stream);
  other.join();
}

TEST_F(Batches, WhatOtherThreadsAllocateIsTheOnlyOpenBatchs) {
  ASSERT_NO_FATAL_FAILURE(start());
  Arena& here = arena();
  const auto batch = begin_batch_in(here, "step");
  ASSERT_TRUE(batch);
  CUdeviceptr block = 0;
  on_another_thread([&] { block = allocate(kMib, make_stream()); });
  EXPECT_EQ(batch->ticket->net, mib(1));
  EXPECT_EQ(batch->ticket->peak, mib(1));
  free(block);
  EXPECT_EQ(batch->ticket->awaiting, mib(1));
  end_batch_in(here);
}

TEST_F(Batches, WithTwoOpenOnlyTheOwnThreadsAllocationsAreABatchs) {
  // The first of an unknown kind is promised all: the second is admitted after the longest wait.
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_MAX_WAIT", "50ms"}}));
  Arena& here = arena();
  const auto batch = begin_batch_in(here, "step");
  ASSERT_TRUE(batch);
  CUdeviceptr theirs = 0;
  on_another_thread([&] {
    const auto other = begin_batch_in(here, "other");
    ASSERT_TRUE(other);
    theirs = allocate(2 * kMib);
    EXPECT_EQ(other->ticket->net, mib(2));
    on_another_thread([&] { (void)allocate(4 * kMib); });
    EXPECT_EQ(other->ticket->net, mib(2));
    end_batch_in(here);
  });
  EXPECT_EQ(batch->ticket->net, Bytes{});
  const CUdeviceptr own = allocate(kMib);
  EXPECT_EQ(batch->ticket->net, mib(1));
  free(own);
  free(theirs);
  end_batch_in(here);
}

TEST_F(Batches, NoneIsBegunInACapture) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  begin_capture(stream);
  EXPECT_FALSE(begin_batch("step"));
  end_capture(stream);
}

TEST_F(Batches, WhatIsSharedIsNoLongerTheBatchs) {
  ASSERT_NO_FATAL_FAILURE(start());
  Arena& here = arena();
  const auto batch = begin_batch_in(here, "step");
  ASSERT_TRUE(batch);
  const CUdeviceptr block = allocate(4 * kMib);
  EXPECT_EQ(batch->ticket->net, mib(4));
  CUipcMemHandle handle;
  ASSERT_EQ(cuIpcGetMemHandle(&handle, block), CUDA_SUCCESS);
  EXPECT_EQ(batch->ticket->net, Bytes{});
  free(block);
  end_batch_in(here);
}

}  // namespace
}  // namespace weir::preload::testing
