// The order of work: in a stream, between streams, and around the default ones.

#include <thread>
#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInStream : public StandIn {};

TEST_F(StandInStream, RunsWorkLate) {
  unsigned char* memory = make_memory();
  while_held([&] {
    ok(cudaMemsetAsync(memory, 7, 512, stream_));
    EXPECT_FALSE(all_bytes(memory, 7));
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
    EXPECT_EQ(weir_standin_pending(stream_), 1U);
  });
  sync();
  EXPECT_TRUE(all_bytes(memory, 7));
  ok(cudaStreamQuery(stream_));
  EXPECT_EQ(weir_standin_pending(stream_), 0U);
}

TEST_F(StandInStream, KeepsItsOrder) {
  std::vector<int> order;
  std::vector<std::pair<std::vector<int>*, int>> steps;
  for (int i = 0; i < 100; ++i) steps.emplace_back(&order, i);
  const auto run = [](void* data) {
    const auto& [into, number] = *static_cast<std::pair<std::vector<int>*, int>*>(data);
    into->push_back(number);
  };
  for (auto& step : steps) ok(cudaLaunchHostFunc(stream_, run, &step));
  sync();
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

/// Sets a byte in each of two streams. The second may run while the first is held, or waits for it.
void expect_order(cudaStream_t first, cudaStream_t second, bool waits) {
  void* memory = nullptr;
  ok(cudaMalloc(&memory, 512));
  auto* const bytes = static_cast<unsigned char*>(memory);
  weir_standin_hold(first);
  ok(cudaMemsetAsync(bytes, 1, 512, first));
  ok(cudaMemsetAsync(bytes, 2, 256, second));
  if (waits) {
    EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  } else {
    ok(cudaStreamSynchronize(second));
    EXPECT_EQ(bytes[0], 2);
  }
  EXPECT_EQ(cudaStreamQuery(first), cudaErrorNotReady);
  weir_standin_release(first);
  ok(cudaStreamSynchronize(second));
  ok(cudaStreamSynchronize(first));
  EXPECT_EQ(bytes[0], waits ? 2 : 1);
}

TEST_F(StandInStream, WaitsForAnotherOnlyIfOneIsTheLegacyOneAndTheOtherBlocks) {
  cudaStream_t blocking = make_stream(cudaStreamDefault);
  expect_order(stream_, make_stream(), false);
  expect_order(blocking, make_stream(cudaStreamDefault), false);
  expect_order(blocking, nullptr, true);
  expect_order(cudaStreamLegacy, blocking, true);
  expect_order(nullptr, stream_, false);
}

TEST_F(StandInStream, IsHeldWithAllOthers) {
  unsigned char* memory = make_memory();
  weir_standin_hold(weir_standin_all_streams());
  cudaStream_t later = make_stream();
  ok(cudaMemsetAsync(memory, 1, 256, stream_));
  ok(cudaMemsetAsync(memory + 256, 2, 256, later));
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(later), cudaErrorNotReady);
  EXPECT_EQ(weir_standin_pending(weir_standin_all_streams()), 2U);
  weir_standin_release(weir_standin_all_streams());
  ok(cudaDeviceSynchronize());
  EXPECT_EQ(weir_standin_pending(weir_standin_all_streams()), 0U);
}

TEST_F(StandInStream, EndsItsWorkWhenDestroyedAndIsUnknownThen) {
  unsigned char* memory = make_memory();
  while_held([&] { ok(cudaMemsetAsync(memory, 7, 512, stream_)); });
  ok(cudaStreamDestroy(stream_));
  EXPECT_EQ(weir_standin_live().streams, 0U);
  ok(cudaDeviceSynchronize());
  EXPECT_TRUE(all_bytes(memory, 7));
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaErrorInvalidResourceHandle);
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
  cudaError_t seen = cudaSuccess;
  ok(cudaLaunchHostFunc(
      stream_,
      [](void* data) {
        void* memory = nullptr;
        *static_cast<cudaError_t*>(data) = cudaMalloc(&memory, 1);
      },
      &seen));
  sync();
  EXPECT_EQ(seen, cudaErrorNotPermitted);
}

TEST_F(StandInStream, HostFunctionsOfAStreamNeedNoCurrentContext) {
  bool ran = false;
  std::thread([&] {
    const auto run = [](void* data) { *static_cast<bool*>(data) = true; };
    ok(cuLaunchHostFunc(stream_, run, &ran));
    EXPECT_EQ(cuLaunchHostFunc(nullptr, run, &ran), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  sync();
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
  weir_standin_hold(stream_);
  ok(cudaMemsetAsync(memory, 1, 512, stream_));
  const auto callback = [](cudaStream_t of, cudaError_t state, void* data) {
    auto* out = static_cast<Seen*>(data);
    void* more = nullptr;
    *out = {std::this_thread::get_id(), of, state, cudaMalloc(&more, 1)};
  };
  ok(cudaStreamAddCallback(stream_, callback, &seen, 0));
  EXPECT_EQ(weir_standin_pending(stream_), 2U);
  weir_standin_release(stream_);
  sync();
  EXPECT_NE(seen.thread, std::this_thread::get_id());
  EXPECT_EQ(seen.stream, stream_);
  EXPECT_EQ(seen.state, cudaSuccess);
  EXPECT_EQ(seen.answer, cudaErrorNotPermitted);
  EXPECT_EQ(cudaStreamAddCallback(stream_, callback, &seen, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamAddCallback(stream_, nullptr, &seen, 0), cudaErrorInvalidValue);
}

TEST_F(StandInStream, CallbacksAreToldOfABrokenContext) {
  const auto nothing = [](const WeirStandinLaunch*) {};
  static const char kKernel = 0;
  weir_standin_register_kernel(&kKernel, nullptr, nothing, nullptr, 0);
  weir_standin_fail_kernel(1, CUDA_ERROR_LAUNCH_FAILED);
  weir_standin_hold(stream_);
  ok(cudaLaunchKernel(&kKernel, dim3(1), dim3(1), nullptr, 0, stream_));
  bool hosted = false;
  cudaError_t seen = cudaSuccess;
  ok(cudaLaunchHostFunc(
      stream_, [](void* data) { *static_cast<bool*>(data) = true; }, &hosted));
  ok(cudaStreamAddCallback(
      stream_,
      [](cudaStream_t, cudaError_t state, void* data) { *static_cast<cudaError_t*>(data) = state; },
      &seen, 0));
  weir_standin_release(stream_);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchFailure);
  // Nobody waits for a broken context: it may be refused before the callback has run.
  while (weir_standin_pending(stream_) != 0) std::this_thread::yield();
  EXPECT_EQ(seen, cudaErrorLaunchFailure);
  EXPECT_FALSE(hosted);
  weir_standin_clear_faults();
}

TEST_F(StandInStream, TakesWorkOfManyThreads) {
  std::size_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        ok(cudaLaunchHostFunc(
            stream_, [](void* data) { ++*static_cast<std::size_t*>(data); }, &count));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  sync();
  EXPECT_EQ(count, 400U);
}

TEST_F(StandInStream, IsSlowOnDemand) {
  cudaEvent_t start = make_event(cudaEventDefault);
  cudaEvent_t end = make_event(cudaEventDefault);
  weir_standin_delay(stream_, 2'000'000);
  ok(cudaEventRecord(start, stream_));
  ok(cudaEventRecord(end, stream_));
  sync();
  float milliseconds = 0;
  ok(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 2.0F);
}

}  // namespace
}  // namespace weir::standin::testing
