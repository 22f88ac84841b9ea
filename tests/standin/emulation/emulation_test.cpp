// The project's launches, with kernels compiled by the host's compiler.

#include "tests/standin/emulation/emulation.hpp"

#include <numeric>
#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

/// Each block reverses its part of `numbers`, through shared memory.
__global__ void reverse_kernel(float* numbers) {
  __shared__ float staged[256];
  const unsigned last = blockDim.x - 1;
  float* const own = numbers + static_cast<std::size_t>(blockIdx.x) * blockDim.x;
  staged[threadIdx.x] = own[threadIdx.x];
  __syncthreads();
  own[threadIdx.x] = staged[last - threadIdx.x];
}

/// The values that each lane gets from the others: four numbers a lane.
__global__ void lanes_kernel(int* seen) {
  const int lane = static_cast<int>(threadIdx.x);
  seen[4 * lane] = __shfl_sync(0xFFFFFFFFU, lane, 5);
  seen[4 * lane + 1] = __shfl_xor_sync(0xFFFFFFFFU, lane, 1);
  seen[4 * lane + 2] = __shfl_up_sync(0xFFFFFFFFU, lane, 2, 8);
  seen[4 * lane + 3] = static_cast<int>(__ballot_sync(0xFFFFFFFFU, lane < 4 ? 1 : 0));
}

/// Counts its threads; half of them end before the barrier at which the others wait.
__global__ void leave_kernel(int* counted) {
  atomicAdd(counted, 1);
  if (threadIdx.x % 2 == 1) return;
  const int left = __syncthreads_count(1);
  if (threadIdx.x == 0) counted[1] = left;
}

/// A barrier for only half of the threads, while the others wait at another.
__global__ void hang_kernel(int* seen) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    seen[threadIdx.x] = __shfl_sync(0xFFFFFFFFU, 1, 0);
  }
}

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
    cuda::launch("reverse", reverse_kernel, {3, threads}, blocking_, device);
    for (std::size_t first = 0; first < count; first += threads) {
      std::reverse(&numbers[first], &numbers[first] + threads);
    }
    EXPECT_EQ(to_host(device, count), numbers) << threads << " threads";
  }
}

TEST_F(StandInEmulation, ShufflesReachTheLanesTheyName) {
  int* seen = to_device(std::vector<int>(128));
  cuda::launch("lanes", lanes_kernel, {1, 32}, blocking_, seen);
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
  cuda::launch("leave", leave_kernel, {1, 100}, blocking_, counted);
  EXPECT_EQ(to_host(counted, 2), (std::vector<int>{100, 50}));
}

TEST_F(StandInEmulation, KernelsOfTwoStreamsKeepTheirSharedMemoryApart) {
  cudaStream_t other = make_stream();
  std::vector<float> numbers(256);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  float* first = to_device(numbers);
  float* second = to_device(numbers);
  for (int i = 0; i < 20; ++i) {
    cuda::launch("reverse", reverse_kernel, {1, 256}, blocking_, first);
    cuda::launch("reverse", reverse_kernel, {1, 256}, other, second);
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
        cuda::launch("hang", hang_kernel, {1, 32}, blocking_, seen);
        (void)cudaDeviceSynchronize();
      },
      "wait at a barrier");
}

}  // namespace
}  // namespace weir::standin::testing
