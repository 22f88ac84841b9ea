#pragma once

// How PyTorch, JAX and TensorFlow come by memory, as their own variables have it. Pure.

#include <array>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// How a framework comes by the memory of a tensor.
enum class Way {
  kCache,        ///< cut from segments that it keeps
  kStreamOrder,  ///< asked for in stream order
  kHandles,      ///< mapped from handles, which are not memory of Weir's pool
  kUncached,     ///< asked for one by one, not in stream order
  kOther,        ///< by a value that is not known here
};

struct InForce {
  const char* framework;
  Way way = Way::kCache;
  const char* variable = nullptr;  ///< that has it so; null by default
};

inline constexpr const char* kPyTorch = "PyTorch";
/// Of PyTorch's two names the older is read where it is set, even if to nothing (tried with 2.15);
/// the newer is read from 2.9 on.
inline constexpr const char* kTorchOlder = "PYTORCH_CUDA_ALLOC_CONF";
inline constexpr const char* kTorchNewer = "PYTORCH_ALLOC_CONF";
inline constexpr const char* kTorchAsync = "backend:cudaMallocAsync";

/// PyTorch first.
using Frameworks = std::array<InForce, 3>;
/// What is in force in a program with this environment, as long as it does not decide by itself.
[[nodiscard]] Frameworks frameworks_in(const Environment& environment);

}  // namespace weir::cli
