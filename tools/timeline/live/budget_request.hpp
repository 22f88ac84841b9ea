#pragma once

// What `weir set` asks of a running program, and what it answers. Pure: the bytes of a request are
// a stranger's.

#include <cstdint>
#include <optional>

#include "allocator/bytes.hpp"
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

}  // namespace weir::timeline
