#pragma once

// Why a device had nothing to do: the decision as a pure function.

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::timeline {

/// What a gap of a device is put down to. In the order in which ties are decided.
enum class IdleCause : std::uint8_t {
  kBarrier,   ///< the program waited for the device
  kMemory,    ///< an allocation waited
  kBudget,    ///< a batch was not admitted: no room in the budget, or another producer's turn
  kRunAhead,  ///< a batch was not admitted: enough device time was queued
  kPace,      ///< a launch was held back
  kLoader,    ///< no batch was begun
  kLaunch,    ///< the work was submitted in time, or right behind other work: it came late
  kUnknown,   ///< nothing known
};
inline constexpr std::size_t kIdleCauses = static_cast<std::size_t>(IdleCause::kUnknown) + 1;
/// One word each: `barrier`, `memory`, `budget`, `throttled`, `pace`, `loader`, `launch`,
/// `unknown`.
[[nodiscard]] std::string_view to_string(IdleCause cause) noexcept;
/// What it means, and what helps, in one sentence.
[[nodiscard]] std::string_view explain(IdleCause cause) noexcept;

/// Time by cause.
using IdleTimes = std::array<std::uint64_t, kIdleCauses>;

/// One gap, and what the thread did that submitted the work which ended it.
struct GapFacts {
  std::uint64_t length = 0;
  /// Part of the gap after the work was submitted: all of it where that was before the gap.
  std::uint64_t after_submission = 0;
  bool submission_known = false;
  /// What the thread did from the submission of the work that ran last before the gap to the
  /// submission of the work that ended it. kLoader: outside of any batch and of any wait of ours.
  /// kLaunch: in calls that submit, and between two of them less than kRightBehind apart.
  IdleTimes before_submission{};
};
/// Two submissions of one thread that are no further apart belong together.
inline constexpr std::uint64_t kRightBehind = 1'000'000;

/// The one cause. A gap of which at least half is after the submission is kLaunch. Otherwise it is
/// what took the thread longest since its last submission, also before the gap began: a barrier
/// that ends as the device runs dry has held the thread back while the device was busy, and so has
/// a limit. Of equal times the first of IdleCause wins.
[[nodiscard]] IdleCause cause_of(const GapFacts& facts) noexcept;

}  // namespace weir::timeline
