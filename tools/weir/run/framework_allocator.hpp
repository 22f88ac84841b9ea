#pragma once

// How PyTorch, JAX and TensorFlow allocate, by their own variables, and what selects it. Pure.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"
#include "tools/preload/settings/settings.hpp"

namespace weir::cli {

struct Variable {
  std::string name;
  std::string value;

  friend bool operator==(const Variable&, const Variable&) = default;
};

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

enum class AllocatorMode {
  kFramework,  ///< each framework's own; sets nothing
  kAsync,      ///< each tensor from the driver in stream order, unless the user set something else
};

[[nodiscard]] constexpr auto names_of(AllocatorMode /*of*/) noexcept {
  return name_table("framework", "async");
}
/// WEIR_ALLOCATOR. Throws UsageError for a bad value.
[[nodiscard]] Setting<AllocatorMode> allocator_mode(const Environment& environment);

/// Returns how PyTorch allocates: by WEIR_TORCH where it is set, else as an `allocator` that was
/// set has it for every framework (async, or its own), else by the plug. Throws UsageError for a
/// bad value.
[[nodiscard]] Setting<preload::TorchWay> torch_way(const Setting<AllocatorMode>& allocator,
                                                   const Environment& environment);

struct Choice {
  AllocatorMode mode = AllocatorMode::kFramework;      ///< of the other frameworks
  preload::TorchWay torch = preload::TorchWay::kPlug;  ///< of PyTorch
  std::vector<std::string> plugs;  ///< the versions of PyTorch that the library has plugs for
};

struct FrameworkAllocator {
  std::vector<Variable> variables;  ///< to be set, each name once
  /// One line for people, without a newline: what is in force, and its cost or gain. Reads the
  /// user's settings as the framework does. Names no pool and quotes no value.
  std::string line;
};

/// For a program in `environment`. Framework settings of the user stay.
[[nodiscard]] FrameworkAllocator choose_allocator(const Choice& choice,
                                                  const Environment& environment);

}  // namespace weir::cli
