#pragma once

// Decides why a device was idle, as a pure function.

#include <array>
#include <cstdint>
#include <string_view>

#include "allocator/base/names.hpp"

namespace weir::timeline {

/// The cause of a device's gap. Earlier values win ties.
enum class IdleCause : std::uint8_t {
  kBarrier,   ///< the program waited for the device
  kMemory,    ///< an allocation waited
  kBudget,    ///< a batch was not admitted: no room in the budget, or another producer's turn
  kRunAhead,  ///< a batch was not admitted: enough device time was queued
  kPace,      ///< a launch was held back
  kLoader,    ///< no batch was open
  kLaunch,    ///< the work was submitted in time, or right after other work, but began late
  kUnknown,   ///< unknown
};
/// One word each.
[[nodiscard]] constexpr auto names_of(IdleCause /*of*/) noexcept {
  return name_table("barrier", "memory", "budget", "throttled", "pace", "loader", "launch",
                    "unknown");
}
inline constexpr std::size_t kIdleCauses = names_of(IdleCause{}).size();
/// Returns the cause's meaning and a remedy in one sentence.
[[nodiscard]] std::string_view explain(IdleCause cause) noexcept;

/// Time by cause.
using IdleTimes = std::array<std::uint64_t, kIdleCauses>;

/// One gap, and the activity of the thread that submitted the work which ended the gap.
struct GapFacts {
  std::uint64_t length = 0;
  /// The part of the gap after the submission of that work; the whole gap if that was before it.
  std::uint64_t after_submission = 0;
  bool submission_known = false;
  /// The thread's activity from the submission of the last work before the gap to the submission of
  /// the work that ended it. kLoader: outside batches and our waits. kLaunch: in submitting calls,
  /// and between two of them less than kRightBehind apart.
  IdleTimes before_submission{};
};
/// Two submissions of one thread that are at most this far apart belong together.
inline constexpr std::uint64_t kRightBehind = 1'000'000;

/// Returns the cause. It is kLaunch if at least half of the gap is after the submission. Otherwise
/// it is what took the thread longest since its last submission. Time before the gap counts, too: a
/// barrier or a limit that ends as the device runs dry has held the thread back while the device
/// was busy. The first IdleCause wins ties.
[[nodiscard]] IdleCause cause_of(const GapFacts& facts) noexcept;

}  // namespace weir::timeline
