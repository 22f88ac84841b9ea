// CUDA calls that fail, one at a time: each failure releases its resources, reports what failed,
// and leaves no wait without an end.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "allocator/pool.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/standin_fixture.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using testing::LogCapture;
using testing::message_of;

class CudaFaults : public testing::StandinTest {};

TEST_F(CudaFaults, AnErrorNamesTheCallTheCodeAndWhatCudaSays) {
  EXPECT_EQ(message_of<CudaError>([] { check_cuda(cudaErrorInvalidValue, "cudaSomething"); }),
            "cudaSomething failed: cudaErrorInvalidValue (1): invalid argument");
}

TEST_F(CudaFaults, AnAllocationThatTheDriverRefusesIsNoError) {
  CudaUpstream upstream(0);
  fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(upstream.allocate(kib(4)), nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(upstream.used(), Bytes{});
  void* const block = upstream.allocate(kib(4));
  EXPECT_NE(block, nullptr);
  upstream.deallocate(block, kib(4));
}

TEST_F(CudaFaults, AnAllocationThatFailsForAnotherReasonSaysSo) {
  CudaUpstream upstream(0);
  fail("cuMemAlloc", 1, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(message_of<CudaError>([&] { (void)upstream.allocate(kib(4)); }),
            "cudaMalloc failed: cudaErrorInvalidValue (1): invalid argument (4 KiB)");
  EXPECT_EQ(upstream.used(), Bytes{});
}

TEST_F(CudaFaults, PinnedMemoryThatIsRefusedIsNoError) {
  PinnedUpstream upstream(0, mib(1));
  fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(upstream.allocate(kib(4)), nullptr);
  EXPECT_EQ(upstream.allocate(mib(2)), nullptr) << "over its capacity";
  EXPECT_EQ(upstream.used(), Bytes{});
}

TEST_F(CudaFaults, MemoryThatCannotBeGivenBackStaysInTheAccounting) {
  const LogCapture log;
  CudaUpstream upstream(0);
  void* const block = upstream.allocate(kib(4));
  fail("cuMemFree", 1, CUDA_ERROR_INVALID_VALUE);
  upstream.deallocate(block, kib(4));
  EXPECT_EQ(upstream.used(), kib(4));
  EXPECT_FALSE(log.containing("cudaFree failed").empty());
  EXPECT_EQ(cudaFree(block), cudaSuccess);
}

TEST_F(CudaFaults, AnOpeningThatFailsGivesBackWhatItTook) {
  const auto fails_at = [](const char* call, std::uint64_t nth) {
    fail(call, nth, CUDA_ERROR_INVALID_VALUE);
    bool failed = false;
    try {
      const CudaDevice device(0);
    } catch (const CudaError&) {
      failed = true;
    }
    EXPECT_EQ(weir_standin_live().streams, 0U) << call << " " << nth;
    EXPECT_EQ(weir_standin_live().events, 0U) << call << " " << nth;
    weir_standin_clear_faults();
    return failed;
  };
  EXPECT_TRUE(fails_at("cuMemGetInfo", 1));
  for (std::uint64_t nth = 1; nth <= kStreamRoles; ++nth) {
    EXPECT_TRUE(fails_at("cuStreamCreateWithPriority", nth)) << nth;
  }
}

/// A device with a pool and a scheduler, whose compute stream can be held by a gate.
class CudaFaultsUnderWork : public testing::StandinTest {
 protected:
  ~CudaFaultsUnderWork() override { gate.open(); }

  void submit_set(const Tensor& tensor, int value) {
    scheduler->submit("set", {.writes = {tensor}}, [value](Stream& stream, Inputs, Outputs out) {
      check_cuda(cudaMemsetAsync(out[0].data(), value, out[0].size_bytes(), cuda_stream(stream)),
                 "cudaMemsetAsync");
    });
  }
  void hold(StreamRole role = StreamRole::kCompute) {
    scheduler->submit("hold", {.stream = role}, [this](Stream& stream, Inputs, Outputs) {
      const auto call = [](void* data) { static_cast<testing::Gate*>(data)->pass(); };
      check_cuda(cudaLaunchHostFunc(cuda_stream(stream), call, &gate), "cudaLaunchHostFunc");
    });
    gate.await_arrival();
  }
  /// Submits an operation, and returns what its closure keeps until the device is done with it.
  std::weak_ptr<int> submit_use(StreamRole role = StreamRole::kCompute) {
    auto used = std::make_shared<int>(0);
    scheduler->submit("use", {.stream = role}, [used](Stream&, Inputs, Outputs) {});
    return used;
  }
  /// Ends the scheduler, which must wait for what the stream at the gate still uses.
  void expect_end_waits_for(const std::weak_ptr<int>& watched) {
    std::thread closer([this] { scheduler.reset(); });
    testing::give_others_a_chance();
    EXPECT_FALSE(watched.expired());
    gate.open();
    closer.join();
    EXPECT_TRUE(watched.expired());
  }
  void close() {
    scheduler.reset();
    pool.reset();
    device.reset();
  }

  LogCapture log;
  testing::Gate gate;
  std::unique_ptr<Device> device = std::make_unique<Device>(std::make_unique<CudaDevice>(0));
  std::unique_ptr<Pool> pool = std::make_unique<Pool>(device->memory());
  std::unique_ptr<Scheduler> scheduler = std::make_unique<Scheduler>(*device, *pool);
};

TEST_F(CudaFaultsUnderWork, ALaunchThatFailsMarksItsOutputsAndNothingElse) {
  const Tensor x = scheduler->empty({1024}, "x");
  const Tensor y = scheduler->empty({1024}, "y");
  fail("cuMemsetD8Async", 1, CUDA_ERROR_INVALID_VALUE);
  submit_set(x, 1);
  submit_set(y, 2);
  scheduler->wait(y);
  EXPECT_NE(message_of<OperationError>([&] { scheduler->wait(x); }).find("cudaMemsetAsync failed"),
            std::string::npos);
  EXPECT_THROW(scheduler->wait_all(), OperationError);
}

TEST_F(CudaFaultsUnderWork, WorkWhoseEventCannotBeRecordedIsCoveredByALaterOne) {
  const Tensor x = scheduler->empty({1024}, "x");
  hold();
  fail("cuEventRecord", 1, CUDA_ERROR_OUT_OF_MEMORY);
  submit_set(x, 1);
  const Point point = scheduler->written(x);
  EXPECT_FALSE(scheduler->reached(point));
  gate.open();
  scheduler->wait(x);
  EXPECT_EQ(scheduler->read(x).size(), 1024U);
}

TEST_F(CudaFaultsUnderWork, AWaitForWorkThatNoEventCanCoverEndsWithTheError) {
  const Tensor x = scheduler->empty({1024}, "x");
  hold();
  fail_from_now_on("cuEventRecord", CUDA_ERROR_OUT_OF_MEMORY);
  submit_set(x, 1);
  EXPECT_THROW(scheduler->wait(x), CudaError);
  weir_standin_clear_faults();
  gate.open();
  scheduler->wait(x);
}

TEST_F(CudaFaultsUnderWork, AnEventThatErrsEndsEveryWaitAndReusesNothing) {
  const Tensor x = scheduler->empty({1024}, "x");
  hold();
  submit_set(x, 1);
  fail("cuEventQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  gate.open();
  EXPECT_THROW(scheduler->wait(x), CudaError);
  EXPECT_THROW(scheduler->wait_all(), CudaError);
  EXPECT_THROW(submit_set(x, 2), CudaError);
  EXPECT_FALSE(scheduler->reached(scheduler->written(x)));
  EXPECT_FALSE(log.containing("the GPU failed").empty());
  close();
  // The pool could not learn whether the device was done with its memory, so it kept it.
  EXPECT_GT(weir_standin_live().device_blocks, 0U);
  weir_standin_reset();
}

TEST_F(CudaFaultsUnderWork, WhatALostDeviceMayStillUseStaysUntilItHasEnded) {
  auto used = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = used;
  hold();
  scheduler->submit("use", {}, [used](Stream&, Inputs, Outputs) {});
  used.reset();
  fail("cuEventQuery", 1, CUDA_ERROR_INVALID_VALUE);
  std::thread looker([this] {
    // Meets the error, and then stays until the stream has ended.
    (void)device->backend().progress().passed(device->backend().stream(StreamRole::kCompute));
  });
  while (log.containing("the GPU failed").empty()) std::this_thread::yield();
  testing::give_others_a_chance();
  EXPECT_FALSE(watched.expired()) << "the device still works on it";
  gate.open();
  looker.join();
  while (!watched.expired()) std::this_thread::yield();
}

TEST_F(CudaFaultsUnderWork, AnEndAfterAFailureWaitsForTheStreamsThatStillWork) {
  const Tensor x = scheduler->empty({1024}, "x");
  submit_set(x, 1);
  scheduler->wait(x);
  hold(StreamRole::kCopyOut);
  const std::weak_ptr<int> watched = submit_use(StreamRole::kCopyOut);
  fail("cuEventQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  submit_set(x, 2);
  EXPECT_THROW(scheduler->wait(x), CudaError);
  expect_end_waits_for(watched);
  close();
  weir_standin_reset();  // memory that the failed stream may still use is kept
}

TEST_F(CudaFaultsUnderWork, AnEndWithoutEventsAsksTheStreamsThemselves) {
  fail_from_now_on("cuEventRecord", CUDA_ERROR_OUT_OF_MEMORY);
  hold();
  const std::weak_ptr<int> watched = submit_use();
  expect_end_waits_for(watched);
  weir_standin_clear_faults();
}

TEST_F(CudaFaultsUnderWork, ACopyFromPlainMemoryHoldsNobody) {
  hold(StreamRole::kCopyIn);
  std::vector<float> plain(4096, 2.5F);
  const Tensor x = scheduler->copy_in(plain, {plain.size()});  // returns, with the stream held
  std::fill(plain.begin(), plain.end(), 0.0F);                 // and has let go of it
  gate.open();
  EXPECT_EQ(scheduler->read(x), std::vector<float>(4096, 2.5F));
}

TEST_F(CudaFaultsUnderWork, AStreamThatCannotBeMadeToWaitTakesNoBlock) {
  pool->set_limits(kib(8), {});
  void* const x = pool->allocate(kib(8), device->backend().stream(StreamRole::kCompute), "first");
  hold();
  pool->deallocate(x, device->backend().stream(StreamRole::kCompute));
  fail("cuStreamWaitEvent", 1, CUDA_ERROR_INVALID_VALUE);
  const StreamId second = device->backend().stream(StreamRole::kCompute2);
  EXPECT_THROW((void)pool->allocate(kib(8), second), CudaError);
  EXPECT_EQ(pool->statistics().handovers, 0U);
  EXPECT_EQ(pool->allocate(kib(8), second), x);
  EXPECT_EQ(pool->statistics().handovers, 1U);
  gate.open();
  pool->deallocate(x, second);
}

TEST_F(CudaFaultsUnderWork, TheThreadOfAStreamSleepsUntilTheDeviceIsDone) {
  hold();
  // Only that thread polls here. It asks a few times, and then sleeps in one call.
  const auto asked = [] { return weir_standin_calls("cuEventQuery"); };
  while (weir_standin_calls("cuEventSynchronize") == 0 && asked() < 100'000) {
    std::this_thread::yield();
  }
  EXPECT_GT(weir_standin_calls("cuEventSynchronize"), 0U);
  EXPECT_EQ(weir_standin_blocking_records(), 1U) << "in another event it would spin";
  const std::uint64_t before = asked();
  testing::give_others_a_chance();
  EXPECT_LE(asked(), before + 4);
  gate.open();
}

TEST_F(CudaFaultsUnderWork, APointBehindATaskIsNoCallOfCudas) {
  hold();
  while (weir_standin_calls("cuEventSynchronize") == 0) std::this_thread::yield();
  // The stream's thread sleeps in that call. Those of the other streams may still have to start,
  // with a few calls each.
  const std::uint64_t before = weir_standin_calls(nullptr);
  Progress& progress = device->backend().progress();
  const StreamId stream = device->backend().stream(StreamRole::kCompute);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(progress.record(stream).sequence, 1U);
  EXPECT_LT(weir_standin_calls(nullptr), before + 100);
  gate.open();
}

TEST_F(CudaFaultsUnderWork, NoCallPinsMemoryOnceReadersAreWarm) {
  const Tensor x = scheduler->empty({4096}, "x");
  submit_set(x, 1);
  (void)scheduler->read(x);
  weir_standin_clear_counters();
  for (int i = 0; i < 50; ++i) (void)scheduler->read(x);
  EXPECT_EQ(weir_standin_calls("cuMemHostAlloc"), 0U);
  EXPECT_EQ(weir_standin_calls("cuMemFreeHost"), 0U);
  EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 0U);
  // An event on which a thread still sleeps when the next is recorded cannot be reused yet.
  EXPECT_LE(weir_standin_calls("cuEventCreate"), 4U);
}

}  // namespace
}  // namespace weir
