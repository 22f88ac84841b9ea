#pragma once

// Computes when a device and its streams were busy, and why they were idle.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

// Decides why a device was idle, as a pure function.

/// The cause of a device's gap. Earlier values win ties.
enum class IdleCause : std::uint8_t {
  kBarrier,   ///< the program waited for the device
  kBudget,    ///< a batch or an allocation had no room, or it was another producer's turn
  kRunAhead,  ///< a batch was not admitted: enough device time was queued
  kPace,      ///< a launch was held back
  kLoader,    ///< no batch was open
  kLaunch,    ///< the work was submitted in time, or right after other work, but began late
  kUnknown,   ///< unknown
};
/// One word each.
[[nodiscard]] constexpr auto names_of(IdleCause /*of*/) noexcept {
  return name_table("barrier", "budget", "throttled", "pace", "loader", "launch", "unknown");
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

/// A time in which no stream of a device worked.
struct Gap {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Span span{};
  std::uint32_t record = kNone;  ///< the work that ended it
  std::uint32_t site = 0;  ///< the barrier's call site if that is the cause; an index into the
                           ///< process's names
  IdleCause cause = IdleCause::kUnknown;
};
/// The sum of the gaps of one cause or one call site.
struct IdleSum {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};
struct DeviceIdle {
  DeviceKey device{};
  std::string name{};          ///< for people
  Span span{};                 ///< from the first work to the last
  std::uint64_t recorded = 0;  ///< recorded part of the span
  std::uint64_t busy = 0;      ///< part of that in which any stream worked
  std::uint64_t idle = 0;      ///< recorded − busy; the sum of `causes`
  std::array<IdleSum, kIdleCauses> causes{};
  std::vector<Gap> gaps{};  ///< the longest gaps, by time
  std::uint64_t gap_count = 0;
};
/// One stream, from the device's first work to its last.
struct StreamBusy {
  std::uint32_t stream = 0;    ///< index into index.streams()
  std::uint64_t busy = 0;      ///< time with work; never more than `span`
  std::uint64_t recorded = 0;  ///< recorded time of its device
  std::uint64_t count = 0;     ///< number of works
};
struct IdleOptions {
  std::size_t most_gaps = 10000;  ///< the number of gaps to keep per device
};
/// Returns each device that worked, by DeviceKey. A kStreamWait is not work.
[[nodiscard]] std::vector<DeviceIdle> idle_by_cause(const Index& index,
                                                    const IdleOptions& options = {});
/// Returns streams in the order of index.streams().
[[nodiscard]] std::vector<StreamBusy> stream_busy(const Index& index);
/// Returns the recorded times between a device's first and last work in which no stream worked, as
/// disjoint spans in order.
[[nodiscard]] std::vector<Span> idle_spans(const Index& index, DeviceKey device);
}  // namespace weir::timeline
