#pragma once

/// @file
/// The one piece of scratch memory of the operations on a device.
///
/// Functions that need scratch take `std::span<float> workspace` as their last argument: device
/// memory of at least `kWorkspaceBytes`, aligned to `kWorkspaceAlignment`, that overlaps no other
/// argument. What it holds before and after is of no meaning. cuBLAS gets the same memory, so none
/// is allocated behind the caller's back: who owns it takes it from a pool, and it is charged.
///
/// Operations on one stream run in order and may share one workspace; two streams may not. Each
/// function works at any size of its input with the smallest workspace: what does not fit is done
/// in pieces, one after the other, with the same result. Only the bits of a matrix product may
/// depend on the size, because cuBLAS chooses by it: keep to one size where they must repeat.

#include <cstddef>
#include <span>
#include <string_view>

#include "allocator/base/bytes.hpp"

namespace weir::cuda {

/// The least workspace.
inline constexpr Bytes kWorkspaceBytes = mib(4);
/// The same in elements.
inline constexpr std::size_t kWorkspaceElements = kWorkspaceBytes.count / sizeof(float);
/// In bytes. cuBLAS asks for it ("cublasSetWorkspace" in its documentation).
inline constexpr std::size_t kWorkspaceAlignment = 256;

/// Throws UsageError, in the name of `function`, unless `workspace` is large enough and aligned.
/// Thread-safe.
void require_workspace(std::string_view function, std::span<const float> workspace);

}  // namespace weir::cuda
