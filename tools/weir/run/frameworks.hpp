#pragma once

// How PyTorch, JAX and TensorFlow allocate, by their own variables. Pure.

#include <array>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// How a framework allocates a tensor.
enum class Way {
  kCache,        ///< cut from segments that it caches
  kStreamOrder,  ///< requested in stream order
  kHandles,      ///< mapped from handles, so not from Weir's pool
  kUncached,     ///< requested one by one, not in stream order
  kOther,        ///< unknown value
};

struct InForce {
  const char* framework;
  Way way = Way::kCache;
  const char* variable = nullptr;  ///< that sets it; null: the default
};

inline constexpr const char* kPyTorch = "PyTorch";
/// PyTorch reads the older of the two names if it is set, even if empty (tried with 2.15), and the
/// newer one from 2.9 on.
inline constexpr const char* kTorchOlder = "PYTORCH_CUDA_ALLOC_CONF";
inline constexpr const char* kTorchNewer = "PYTORCH_ALLOC_CONF";
inline constexpr const char* kTorchAsync = "backend:cudaMallocAsync";

/// PyTorch first.
using Frameworks = std::array<InForce, 3>;
/// Returns what is in force in this environment, unless the program decides itself.
[[nodiscard]] Frameworks frameworks_in(const Environment& environment);

}  // namespace weir::cli
