#pragma once

/// @file
/// WEIR_SHARE, WEIR_SHARE_FLOOR and WEIR_SHARE_GROUP: whether and how a process shares its budget.

#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/setting.hpp"
#include "allocator/budget.hpp"
#include "allocator/share/share_layout.hpp"

namespace weir {

/// What users set of a shared budget. Its size is that of WEIR_BUDGET.
struct ShareSettings {
  /// WEIR_SHARE: the share's name; empty: the budget is the process's own.
  Setting<std::string> name = Setting<std::string>::by_default({});
  /// WEIR_SHARE_FLOOR: bytes, or a percentage of the budget: at least what the process has live
  /// and its largest batch.
  Setting<BudgetRequest> floor = Setting<BudgetRequest>::by_default({.percent = 25});
  /// WEIR_SHARE_GROUP: the group whose processes may share; empty: only the user's.
  Setting<std::string> group = Setting<std::string>::by_default({});

  /// Throws UsageError with the variable, the value and what is allowed.
  [[nodiscard]] static ShareSettings from_environment(
      const Environment& environment = process_environment());
  /// Whether a share is named.
  [[nodiscard]] bool is_on() const noexcept { return !name.value.empty(); }
  /// Returns the share for device number `device`, where 0 is no GPU: each device has its own. Its
  /// owner is the calling process's user, or the group. Throws UsageError for an unknown group.
  [[nodiscard]] ShareId id(unsigned device) const;
  /// Returns the floor within `budget`. Throws UsageError if it is more.
  [[nodiscard]] Bytes floor_in(Bytes budget) const;
};

/// Parses a share's name: at most 56 characters, since the device's number is added. Throws
/// UsageError otherwise.
[[nodiscard]] std::string parse_share(std::string_view name, std::string_view text);

}  // namespace weir
