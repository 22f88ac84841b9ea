#include "kernels/parts/launch_cuda.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "allocator/base/error_cuda.hpp"
#include "kernels/parts/workspace_cuda.hpp"

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

#if !defined(WEIR_LAUNCH_IS_EMULATED)
void check_launch(cudaError_t code, const char* name) { check_cuda(code, name); }
#endif

Grid grid_for(std::size_t items, std::size_t items_of_block) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const auto multiprocessors = static_cast<std::size_t>(std::max(1, multiprocessors_of(device)));
  const std::size_t needed = items / items_of_block + (items % items_of_block != 0 ? 1 : 0);
  const std::size_t blocks =
      std::clamp<std::size_t>(needed, 1, kBlocksOfMultiprocessor * multiprocessors);
  return {.blocks = static_cast<unsigned>(blocks), .threads = kBlockThreads};
}

void require_workspace(const char* function, std::span<const float> workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
  if (workspace.size() >= kWorkspaceElements && address % kWorkspaceAlignment == 0) return;
  throw UsageError(std::string(function) + ": the workspace has " +
                   std::to_string(workspace.size_bytes()) + " bytes at " + std::to_string(address) +
                   ", expected at least " + std::to_string(kWorkspaceBytes.count) +
                   ", aligned to " + std::to_string(kWorkspaceAlignment));
}

}  // namespace weir::cuda
