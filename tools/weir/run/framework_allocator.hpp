#pragma once

// Which allocator the frameworks use under `weir run`: what is set for them, and the line that says
// what is then in force. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/weir/run/variable.hpp"

namespace weir::cli {

enum class AllocatorMode {
  kFramework,  ///< each framework's own; nothing is set
  kAsync,      ///< each tensor from the driver, in stream order, where the user set nothing else
};

/// `framework` or `async`; UsageError otherwise.
[[nodiscard]] AllocatorMode parse_allocator_mode(std::string_view name, std::string_view text);
/// As parse_allocator_mode reads it.
[[nodiscard]] std::string_view to_string(AllocatorMode mode) noexcept;
/// WEIR_ALLOCATOR. UsageError for a bad one.
[[nodiscard]] Setting<AllocatorMode> allocator_mode(const Environment& environment);

struct FrameworkAllocator {
  std::vector<Variable> variables;  ///< to be set, each name once
  /// For people, without an end of line: what is in force, and what it costs or gains. What the
  /// user set counts as the framework reads it. It names no pool, and repeats no value.
  std::string line;
};

/// For a program in `environment`. What the user set for a framework stays.
[[nodiscard]] FrameworkAllocator choose_allocator(AllocatorMode mode,
                                                  const Environment& environment);

}  // namespace weir::cli
