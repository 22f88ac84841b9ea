// The project's launches, with kernels compiled by the host's compiler.

#include <numeric>
#include <vector>

#include "tests/standin/emulation/self_test.hpp"
#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInEmulation : public StandIn {
 protected:
  template <typename T>
  static T* to_device(const std::vector<T>& host) {
    void* memory = make_memory(host.size() * sizeof(T));
    ok(cudaMemcpy(memory, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return static_cast<T*>(memory);
  }
  template <typename T>
  static std::vector<T> to_host(const T* device, std::size_t count) {
    std::vector<T> host(count);
    ok(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

  const cudaStream_t blocking_ = make_stream(cudaStreamDefault);
};

TEST_F(StandInEmulation, SharedMemoryIsTheBlocksAndBarriersHold) {
  for (const unsigned threads : {1U, 31U, 32U, 100U, 256U}) {
    const std::size_t count = std::size_t{3} * threads;
    std::vector<float> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    float* device = to_device(numbers);
    reverse_blocks(blocking_, device, 3, threads);
    for (std::size_t first = 0; first < count; first += threads) {
      std::reverse(&numbers[first], &numbers[first] + threads);
    }
    EXPECT_EQ(to_host(device, count), numbers) << threads << " threads";
  }
}

TEST_F(StandInEmulation, ShufflesAddUpAWarp) {
  std::vector<float> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  const float* device = to_device(numbers);
  float* sums = to_device(std::vector<float>(4));
  sum_blocks(blocking_, device, numbers.size(), sums, 4, 256);
  const std::vector<float> found = to_host(sums, 4);
  EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0.0F), 500500.0F);
  EXPECT_EQ(found[0], 32896.0F);
}

TEST_F(StandInEmulation, ShufflesReachTheLanesTheyName) {
  int* seen = to_device(std::vector<int>(128));
  look_at_lanes(blocking_, seen);
  const std::vector<int> found = to_host(seen, 128);
  for (int lane = 0; lane < 32; ++lane) {
    const auto at = 4 * static_cast<std::size_t>(lane);
    EXPECT_EQ(found[at], 5);
    EXPECT_EQ(found[at + 1], lane ^ 1);
    EXPECT_EQ(found[at + 2], lane % 8 >= 2 ? lane - 2 : lane);
    EXPECT_EQ(found[at + 3], 0xF);
  }
}

TEST_F(StandInEmulation, ThreadsThatEndedAreNotWaitedFor) {
  int* counted = to_device(std::vector<int>(2));
  leave_early(blocking_, counted, 100);
  EXPECT_EQ(to_host(counted, 2), (std::vector<int>{100, 50}));
}

TEST_F(StandInEmulation, RunsOnTheStreamsThreadLikeOtherWork) {
  std::vector<float> numbers{1, 2, 3};
  float* device = to_device(numbers);
  while_held(blocking_, [&] {
    reverse_blocks(blocking_, device, 1, 3);
    EXPECT_EQ(cudaStreamQuery(blocking_), cudaErrorNotReady);
    EXPECT_EQ(device[0], 1.0F);
  });
  EXPECT_EQ(to_host(device, 3), (std::vector<float>{3, 2, 1}));
}

TEST_F(StandInEmulation, KernelsOfTwoStreamsKeepTheirSharedMemoryApart) {
  cudaStream_t other = make_stream();
  std::vector<float> numbers(256);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  float* first = to_device(numbers);
  float* second = to_device(numbers);
  for (int i = 0; i < 20; ++i) {
    reverse_blocks(blocking_, first, 1, 256);
    reverse_blocks(other, second, 1, 256);
  }
  ok(cudaDeviceSynchronize());
  EXPECT_EQ(to_host(first, 256), numbers);
  EXPECT_EQ(to_host(second, 256), numbers);
}

TEST_F(StandInEmulation, ABarrierThatNeverFillsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        int* seen = to_device(std::vector<int>(32));
        hang(blocking_, seen);
        (void)cudaDeviceSynchronize();
      },
      "wait at a barrier");
}

}  // namespace
}  // namespace weir::standin::testing
