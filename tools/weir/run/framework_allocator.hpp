#pragma once

// Selects the frameworks' allocator under `weir run`: the variables to set, and a line that says
// what is in force. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/weir/run/variable.hpp"

namespace weir::cli {

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
