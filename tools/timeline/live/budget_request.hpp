#pragma once

// What `weir set` asks of a running program, and what it answers. Pure: the bytes of both are a
// stranger's.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "allocator/base/bytes.hpp"
#include "tools/timeline/live/block.hpp"

namespace weir::timeline {

/// Less than this no program can do anything with.
inline constexpr Bytes kLeastBudget = mib(1);

/// Another budget for a device.
struct BudgetAsk {
  std::uint64_t device = 0;  ///< 1 + the GPU's ordinal
  Bytes budget{};
};

enum class BudgetCode : std::uint64_t {
  kTaken = 1,   ///< it is in force
  kOutOfRange,  ///< it is less than kLeastBudget, or more than the device has
  kNoDevice,    ///< the program does not use that device
  kFixed,       ///< the program's budget cannot be changed while it runs
  kTampered,    ///< the block's file is not as the program made it
};

struct BudgetAnswer {
  BudgetCode code = BudgetCode::kFixed;
  Bytes before{};
  Bytes after{};  ///< as before where it was not taken
  Bytes used{};   ///< of it, then: more where the program has yet to free some
  Bytes total{};  ///< of the device
};

/// Whether a device of `total` may have that budget.
[[nodiscard]] constexpr bool is_in_range(Bytes budget, Bytes total) noexcept {
  return budget >= kLeastBudget && budget <= total;
}

/// What `request` asks for; nothing where it is not whole, or is `served`, the last one's serial.
[[nodiscard]] constexpr std::optional<BudgetAsk> ask_of(const LiveRequest& request,
                                                        std::uint64_t served) noexcept {
  if (request.end == 0 || request.begin != request.end || request.end == served) {
    return std::nullopt;
  }
  return BudgetAsk{.device = request.device, .budget = {request.budget}};
}

/// What `answer` says; nothing where no program answers so.
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
