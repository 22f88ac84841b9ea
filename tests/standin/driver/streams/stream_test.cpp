// The order of work: in a stream, between streams, and around the default ones.

#include <thread>
#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInStream : public StandIn {};

TEST_F(StandInStream, RunsWorkLate) {
  unsigned char* memory = make_memory();
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ok(cudaMemsetAsync(memory, 7, 512, stream));
  EXPECT_FALSE(all_bytes(memory, 7));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(weir_standin_pending(stream), 1U);
  weir_standin_release(stream);
  ok(cudaStreamSynchronize(stream));
  EXPECT_TRUE(all_bytes(memory, 7));
  ok(cudaStreamQuery(stream));
  EXPECT_EQ(weir_standin_pending(stream), 0U);
}

TEST_F(StandInStream, KeepsItsOrder) {
  cudaStream_t stream = make_stream();
  std::vector<int> order;
  struct Step {
    std::vector<int>* order;
    int number;
  };
  std::vector<Step> steps;
  for (int i = 0; i < 100; ++i) steps.push_back({&order, i});
  for (Step& step : steps) {
    ok(cudaLaunchHostFunc(
        stream,
        [](void* data) {
          const auto* now = static_cast<Step*>(data);
          now->order->push_back(now->number);
        },
        &step));
  }
  ok(cudaStreamSynchronize(stream));
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(StandInStream, DoesNotWaitForAnother) {
  unsigned char* memory = make_memory();
  cudaStream_t held = make_stream();
  cudaStream_t other = make_stream();
  weir_standin_hold(held);
  ok(cudaMemsetAsync(memory, 1, 256, held));
  ok(cudaMemsetAsync(memory + 256, 2, 256, other));
  ok(cudaStreamSynchronize(other));
  EXPECT_TRUE(all_bytes(memory + 256, 2, 256));
  EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
  weir_standin_release(held);
}

TEST_F(StandInStream, IsHeldWithAllOthers) {
  cudaStream_t stream = make_stream();
  unsigned char* memory = make_memory();
  weir_standin_hold(weir_standin_all_streams());
  cudaStream_t later = make_stream();
  ok(cudaMemsetAsync(memory, 1, 256, stream));
  ok(cudaMemsetAsync(memory + 256, 2, 256, later));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(later), cudaErrorNotReady);
  EXPECT_EQ(weir_standin_pending(weir_standin_all_streams()), 2U);
  weir_standin_release(weir_standin_all_streams());
  ok(cudaDeviceSynchronize());
  EXPECT_EQ(weir_standin_pending(weir_standin_all_streams()), 0U);
}

TEST_F(StandInStream, EndsItsWorkWhenDestroyed) {
  unsigned char* memory = make_memory();
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ok(cudaMemsetAsync(memory, 7, 512, stream));
  weir_standin_release(stream);
  ok(cudaStreamDestroy(stream));
  EXPECT_EQ(weir_standin_live().streams, 0U);
  ok(cudaDeviceSynchronize());
  EXPECT_TRUE(all_bytes(memory, 7));
}

TEST_F(StandInStream, IsUnknownOnceDestroyed) {
  cudaStream_t stream = make_stream();
  ok(cudaStreamDestroy(stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
}

TEST_F(StandInStream, OfTheLegacyKindWaitsForBlockingStreams) {
  unsigned char* memory = make_memory();
  cudaStream_t blocking = make_stream(cudaStreamDefault);
  weir_standin_hold(blocking);
  ok(cudaMemsetAsync(memory, 1, 512, blocking));
  ok(cudaMemsetAsync(memory, 2, 512, nullptr));
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  weir_standin_release(blocking);
  ok(cudaStreamSynchronize(nullptr));
  EXPECT_TRUE(all_bytes(memory, 2));
}

TEST_F(StandInStream, OfTheBlockingKindWaitsForTheLegacyOne) {
  unsigned char* memory = make_memory();
  cudaStream_t blocking = make_stream(cudaStreamDefault);
  weir_standin_hold(cudaStreamLegacy);
  ok(cudaMemsetAsync(memory, 1, 512, cudaStreamLegacy));
  ok(cudaMemsetAsync(memory, 2, 512, blocking));
  EXPECT_EQ(cudaStreamQuery(blocking), cudaErrorNotReady);
  weir_standin_release(cudaStreamLegacy);
  ok(cudaStreamSynchronize(blocking));
  EXPECT_TRUE(all_bytes(memory, 2));
}

TEST_F(StandInStream, OfTheNonBlockingKindWaitsForNone) {
  unsigned char* memory = make_memory();
  cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  weir_standin_hold(nullptr);
  ok(cudaMemsetAsync(memory, 1, 256, nullptr));
  ok(cudaMemsetAsync(memory + 256, 2, 256, stream));
  ok(cudaStreamSynchronize(stream));
  EXPECT_TRUE(all_bytes(memory + 256, 2, 256));
  weir_standin_release(nullptr);
}

TEST_F(StandInStream, IsEachThreadsOwnWhenPerThread) {
  unsigned char* memory = make_memory();
  weir_standin_hold(cudaStreamPerThread);
  ok(cudaMemsetAsync(memory, 1, 256, cudaStreamPerThread));
  std::thread([&] {
    ok(cudaMemsetAsync(memory + 256, 2, 256, cudaStreamPerThread));
    ok(cudaStreamSynchronize(cudaStreamPerThread));
    EXPECT_TRUE(all_bytes(memory + 256, 2, 256));
  }).join();
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  weir_standin_release(cudaStreamPerThread);
}

TEST_F(StandInStream, TellsItsFlagsAndPriority) {
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -3));
  unsigned flags = 0;
  int priority = 0;
  ok(cudaStreamGetFlags(stream, &flags));
  ok(cudaStreamGetPriority(stream, &priority));
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
  EXPECT_EQ(priority, -3);
}

TEST_F(StandInStream, HostFunctionsMayNotCallCuda) {
  cudaStream_t stream = make_stream();
  cudaError_t seen = cudaSuccess;
  ok(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        void* memory = nullptr;
        *static_cast<cudaError_t*>(data) = cudaMalloc(&memory, 1);
      },
      &seen));
  ok(cudaStreamSynchronize(stream));
  EXPECT_EQ(seen, cudaErrorNotPermitted);
}

TEST_F(StandInStream, HostFunctionsOfAStreamNeedNoCurrentContext) {
  cudaStream_t stream = make_stream();
  bool ran = false;
  std::thread([&] {
    const auto run = [](void* data) { *static_cast<bool*>(data) = true; };
    ok(cuLaunchHostFunc(stream, run, &ran));
    EXPECT_EQ(cuLaunchHostFunc(nullptr, run, &ran), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  ok(cudaStreamSynchronize(stream));
  EXPECT_TRUE(ran);
}

TEST_F(StandInStream, CallbacksRunInOrderAndMayNotCallCuda) {
  struct Seen {
    std::thread::id thread;
    cudaStream_t stream = nullptr;
    cudaError_t state = cudaErrorUnknown;
    cudaError_t answer = cudaSuccess;
  } seen;
  unsigned char* memory = make_memory();
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ok(cudaMemsetAsync(memory, 1, 512, stream));
  const auto callback = [](cudaStream_t of, cudaError_t state, void* data) {
    auto* out = static_cast<Seen*>(data);
    void* more = nullptr;
    *out = {std::this_thread::get_id(), of, state, cudaMalloc(&more, 1)};
  };
  ok(cudaStreamAddCallback(stream, callback, &seen, 0));
  EXPECT_EQ(weir_standin_pending(stream), 2U);
  weir_standin_release(stream);
  ok(cudaStreamSynchronize(stream));
  EXPECT_NE(seen.thread, std::this_thread::get_id());
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(seen.state, cudaSuccess);
  EXPECT_EQ(seen.answer, cudaErrorNotPermitted);
  EXPECT_EQ(cudaStreamAddCallback(stream, callback, &seen, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamAddCallback(stream, nullptr, &seen, 0), cudaErrorInvalidValue);
}

TEST_F(StandInStream, CallbacksAreToldOfABrokenContext) {
  const auto nothing = [](const WeirStandinLaunch*) {};
  static const char kKernel = 0;
  weir_standin_register_kernel(&kKernel, nullptr, nothing, nullptr, 0);
  weir_standin_fail_kernel(1, CUDA_ERROR_LAUNCH_FAILED);
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ok(cudaLaunchKernel(&kKernel, dim3(1), dim3(1), nullptr, 0, stream));
  bool hosted = false;
  cudaError_t seen = cudaSuccess;
  ok(cudaLaunchHostFunc(
      stream, [](void* data) { *static_cast<bool*>(data) = true; }, &hosted));
  ok(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t state, void* data) { *static_cast<cudaError_t*>(data) = state; },
      &seen, 0));
  weir_standin_release(stream);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  // Nobody waits for a broken context: it may be refused before the callback has run.
  while (weir_standin_pending(stream) != 0) std::this_thread::yield();
  EXPECT_EQ(seen, cudaErrorLaunchFailure);
  EXPECT_FALSE(hosted);
  weir_standin_clear_faults();
}

TEST_F(StandInStream, TakesWorkOfManyThreads) {
  cudaStream_t stream = make_stream();
  std::size_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        ok(cudaLaunchHostFunc(
            stream, [](void* data) { ++*static_cast<std::size_t*>(data); }, &count));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ok(cudaStreamSynchronize(stream));
  EXPECT_EQ(count, 400U);
}

TEST_F(StandInStream, IsSlowOnDemand) {
  cudaStream_t stream = make_stream();
  cudaEvent_t start = make_event(cudaEventDefault);
  cudaEvent_t end = make_event(cudaEventDefault);
  weir_standin_delay(stream, 2'000'000);
  ok(cudaEventRecord(start, stream));
  ok(cudaEventRecord(end, stream));
  ok(cudaStreamSynchronize(stream));
  float milliseconds = 0;
  ok(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 2.0F);
}

}  // namespace
}  // namespace weir::standin::testing
