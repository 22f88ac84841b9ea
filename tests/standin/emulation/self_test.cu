#include "tests/standin/emulation/self_test.hpp"

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

/// sums[block] = the sum of the block's numbers: lanes by shuffles, warps through shared memory.
/// Lanes beyond `count` contribute zero.
__global__ void __launch_bounds__(256)
    sum_kernel(const float* numbers, std::size_t count, float* sums) {
  __shared__ float of_warps[8];
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  float sum = i < count ? numbers[i] : 0.0F;
  for (unsigned half = warpSize / 2; half > 0; half /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFU, sum, half);
  }
  if (threadIdx.x % warpSize == 0) of_warps[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
  for (unsigned warp = 0; warp < blockDim.x / warpSize; ++warp) total += of_warps[warp];
  sums[blockIdx.x] = total;
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

}  // namespace

void reverse_blocks(cudaStream_t stream, float* numbers, unsigned blocks, unsigned threads) {
  cuda::launch("reverse", reverse_kernel, {blocks, threads}, stream, numbers);
}

void sum_blocks(cudaStream_t stream, const float* numbers, std::size_t count, float* sums,
                unsigned blocks, unsigned threads) {
  cuda::launch("sum", sum_kernel, {blocks, threads}, stream, numbers, count, sums);
}

void look_at_lanes(cudaStream_t stream, int* seen) {
  cuda::launch("lanes", lanes_kernel, {1, 32}, stream, seen);
}

void leave_early(cudaStream_t stream, int* counted, unsigned threads) {
  cuda::launch("leave", leave_kernel, {1, threads}, stream, counted);
}

void hang(cudaStream_t stream, int* seen) {
  cuda::launch("hang", hang_kernel, {1, 32}, stream, seen);
}

}  // namespace weir::standin::testing
