#pragma once

/// @file
/// The budget as a user writes it, and what it comes to on a device.

#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"

namespace weir {

/// A number of bytes, or a share of the device's total.
struct BudgetRequest {
  Bytes bytes{};       ///< used when percent is 0
  double percent = 0;  ///< in (0, 100]

  /// Equal as written: 50% of a device and the bytes that it comes to are different requests.
  friend bool operator==(const BudgetRequest&, const BudgetRequest&) = default;
};

/// `96MiB`, `6GiB`, `80%`. Throws UsageError naming `name`, the value and what is allowed.
[[nodiscard]] BudgetRequest parse_budget(std::string_view name, std::string_view text);

/// MXNet's reserve, the percent of the device that is kept free: 5 is a budget of 95%.
[[nodiscard]] BudgetRequest parse_reserve(std::string_view name, std::string_view text);

/// What `request` comes to on a device of `total` bytes. Throws UsageError when that is nothing or
/// more than the device has; `name` says where the request came from.
[[nodiscard]] Bytes resolve_budget(const BudgetRequest& request, Bytes total,
                                   std::string_view name);

/// A budget on a device of `total` bytes of which `available` are free, other programs having the
/// rest. One that was asked for must be free: UsageError, naming `name`, otherwise. The default one
/// takes what is free, where that is less, down to 5% of the total: UsageError below.
[[nodiscard]] Bytes fit_budget(Bytes budget, Bytes available, Bytes total, std::string_view name,
                               bool by_default);

/// For people to read: `96 MiB`, `95%`.
[[nodiscard]] std::string format_budget(const BudgetRequest& request);

}  // namespace weir
