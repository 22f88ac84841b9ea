#pragma once

// The request of `weir set` to a running program, and the answer. Pure. The bytes of both are
// untrusted.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "allocator/base/bytes.hpp"
#include "tools/timeline/live/block.hpp"

namespace weir::timeline {

/// The least useful budget of a program.
inline constexpr Bytes kLeastBudget = mib(1);

/// A request for another budget of a device.
struct BudgetAsk {
  std::uint64_t device = 0;  ///< 1 + the GPU's ordinal
  Bytes budget{};
};

enum class BudgetCode : std::uint64_t {
  kTaken = 1,   ///< the new budget is in force
  kOutOfRange,  ///< less than kLeastBudget, or more than the device has
  kNoDevice,    ///< the program does not use that device
  kFixed,       ///< the program's budget cannot change at run time
  kTampered,    ///< the block's file was changed by others
};

struct BudgetAnswer {
  BudgetCode code = BudgetCode::kFixed;
  Bytes before{};
  Bytes after{};  ///< unchanged unless taken
  Bytes used{};   ///< used at that time; above the budget if the program has yet to free some
  Bytes total{};  ///< of the device
};

/// Returns whether a device of `total` bytes may have that budget.
[[nodiscard]] constexpr bool is_in_range(Bytes budget, Bytes total) noexcept {
  return budget >= kLeastBudget && budget <= total;
}

/// Decodes a request. Returns nothing if it is incomplete or was served already (its serial is
/// `served`).
[[nodiscard]] constexpr std::optional<BudgetAsk> ask_of(const LiveRequest& request,
                                                        std::uint64_t served) noexcept {
  if (request.end == 0 || request.begin != request.end || request.end == served) {
    return std::nullopt;
  }
  return BudgetAsk{.device = request.device, .budget = {request.budget}};
}

/// Decodes an answer. Returns nothing if no program answers like that.
[[nodiscard]] constexpr std::optional<BudgetAnswer> answer_of(const LiveAnswer& answer) noexcept {
  const bool is_code = answer.code >= static_cast<std::uint64_t>(BudgetCode::kTaken) &&
                       answer.code <= static_cast<std::uint64_t>(BudgetCode::kTampered);
  const std::uint64_t most = std::max({answer.before, answer.after, answer.used, answer.total});
  if (!is_code || most > kMostLiveBytes) return std::nullopt;
  return BudgetAnswer{.code = static_cast<BudgetCode>(answer.code),
                      .before = {answer.before},
                      .after = {answer.after},
                      .used = {answer.used},
                      .total = {answer.total}};
}

}  // namespace weir::timeline
