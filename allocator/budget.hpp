#pragma once

/// @file
/// The budget as a user writes it, and its size on a device.

#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"

namespace weir {

/// A number of bytes, or a share of the device's total.
struct BudgetRequest {
  Bytes bytes{};       ///< used when percent is 0
  double percent = 0;  ///< in (0, 100]

  /// Compares what was written: 50% of a device differs from the same number of bytes.
  friend bool operator==(const BudgetRequest&, const BudgetRequest&) = default;
};

/// Parses `96MiB`, `6GiB` or `80%`. Throws UsageError with `name`, the value and what is allowed.
[[nodiscard]] BudgetRequest parse_budget(std::string_view name, std::string_view text);

/// Parses MXNet's reserve, the percent of the device to keep free: 5 is a budget of 95%.
[[nodiscard]] BudgetRequest parse_reserve(std::string_view name, std::string_view text);

/// Returns the bytes of `request` on a device of `total` bytes. Throws UsageError with `name` if
/// that is zero or exceeds the device.
[[nodiscard]] Bytes resolve_budget(const BudgetRequest& request, Bytes total,
                                   std::string_view name);

/// Fits `budget` to a device of `total` bytes, of which `available` are free. Throws UsageError
/// with `name` if a budget that the user asked for is not free. Lowers the default budget to what
/// is free; throws if that is below 5% of the total.
[[nodiscard]] Bytes fit_budget(Bytes budget, Bytes available, Bytes total, std::string_view name,
                               bool by_default);

/// Formats for people: `96 MiB`, `95%`.
[[nodiscard]] std::string format_budget(const BudgetRequest& request);
/// Returns a text that parse_budget reads as the same request: `96MiB`, `95%`.
[[nodiscard]] std::string exact_budget(const BudgetRequest& request);

}  // namespace weir
