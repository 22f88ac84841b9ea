#include <cstddef>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/elementwise/random.hpp"
#include "kernels/elementwise/random_cuda.hpp"
#include "kernels/parts/each_cuda.hpp"

namespace weir::cuda {
namespace {

/// Each thread draws the four numbers of a block; the first and the last block may be partly
/// outside `out`. All others start `skip` elements before a multiple of four, so all or none are
/// aligned.
__global__ void normal_kernel(std::uint64_t seed, std::uint64_t random_stream, std::uint64_t first,
                              float* out, std::size_t count) {
  const std::size_t skip = first % 4;
  const std::size_t blocks = (skip + count - 1) / 4 + 1;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t b = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks;
       b += stride) {
    const NormalBlock drawn = normal_block(seed, random_stream, first / 4 + b);
    const float4 numbers{drawn.front.first, drawn.front.second, drawn.back.first,
                         drawn.back.second};
    const std::size_t begin = 4 * b;  // counted from `skip` before out[0]
    const bool whole = begin >= skip && begin + 4 <= skip + count;
    if (whole && reinterpret_cast<std::uintptr_t>(out + (begin - skip)) % 16 == 0) {
      store_four(out + (begin - skip), numbers);
      continue;
    }
    const float each[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
    for (std::size_t i = 0; i < 4; ++i) {
      if (begin + i >= skip && begin + i < skip + count) out[begin + i - skip] = each[i];
    }
  }
}

}  // namespace

void fill_normal(cudaStream_t stream, std::uint64_t seed, std::uint64_t random_stream,
                 std::span<float> out, std::uint64_t first) {
  if (first > UINT64_MAX - out.size()) {
    throw UsageError("fill_normal: first index " + std::to_string(first) + " and " +
                     std::to_string(out.size()) + " elements pass the end of the stream at 2^64");
  }
  if (out.empty()) return;
  launch("fill_normal", normal_kernel, grid_for(out.size() / 4 + 2), stream, seed, random_stream,
         first, out.data(), out.size());
}

}  // namespace weir::cuda
