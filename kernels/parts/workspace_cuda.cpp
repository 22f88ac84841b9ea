#include "kernels/parts/workspace_cuda.hpp"

#include <cstdint>
#include <string>

#include "allocator/base/error.hpp"

namespace weir::cuda {

void require_workspace(std::string_view function, std::span<const float> workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
  if (workspace.size() >= kWorkspaceElements && address % kWorkspaceAlignment == 0) return;
  throw UsageError(std::string(function) + ": the workspace has " +
                   std::to_string(workspace.size_bytes()) + " bytes at " + std::to_string(address) +
                   ", expected at least " + std::to_string(kWorkspaceBytes.count) +
                   ", aligned to " + std::to_string(kWorkspaceAlignment));
}

}  // namespace weir::cuda
