#pragma once

/// @file
/// The scratch memory of operations on a device.
///
/// Functions that need scratch take `std::span<float> workspace` as their last argument: device
/// memory of at least `kWorkspaceBytes`, aligned to `kWorkspaceAlignment`, that overlaps no other
/// argument. Its contents before and after are undefined. cuBLAS uses the same memory, so nothing
/// is allocated secretly: the owner takes it from a pool, which charges it.
///
/// Operations on one stream run in order and may share a workspace; two streams may not. Each
/// function handles any input size with the smallest workspace, in pieces if needed, with the same
/// result. Only the bits of a matrix product may depend on the workspace's size, because cuBLAS
/// chooses by it: keep one size if they must repeat.

#include <cstddef>
#include <span>

#include "allocator/base/bytes.hpp"

namespace weir::cuda {

/// The smallest workspace.
inline constexpr Bytes kWorkspaceBytes = mib(4);
/// The same in elements.
inline constexpr std::size_t kWorkspaceElements = kWorkspaceBytes.count / sizeof(float);
/// In bytes. Required by cuBLAS (documentation of "cublasSetWorkspace").
inline constexpr std::size_t kWorkspaceAlignment = 256;

/// Throws UsageError that names `function` unless `workspace` is large enough and aligned.
/// Thread-safe.
void require_workspace(const char* function, std::span<const float> workspace);

}  // namespace weir::cuda
