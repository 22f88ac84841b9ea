#include "kernels/parts/grid_cuda.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace weir::cuda {
namespace {

/// Eight blocks of 256 threads fill a multiprocessor's maximum of 2048 threads.
constexpr std::size_t kBlocksOfMultiprocessor = 8;

/// Cached, because the query is a runtime call and every launch needs it.
int multiprocessors_of(int device) {
  static std::array<std::atomic<int>, 64> known{};
  const auto index = static_cast<std::size_t>(device);
  if (index < known.size() && known[index] != 0) return known[index];
  int count = 0;
  check_cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  if (index < known.size()) known[index] = count;
  return count;
}

}  // namespace

Grid grid_for(std::size_t items, std::size_t items_of_block) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const auto multiprocessors = static_cast<std::size_t>(std::max(1, multiprocessors_of(device)));
  const std::size_t needed = items / items_of_block + (items % items_of_block != 0 ? 1 : 0);
  const std::size_t blocks =
      std::clamp<std::size_t>(needed, 1, kBlocksOfMultiprocessor * multiprocessors);
  return {.blocks = static_cast<unsigned>(blocks), .threads = kBlockThreads};
}

}  // namespace weir::cuda
