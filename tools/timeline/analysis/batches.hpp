#pragma once

// Computes what held batches back.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir {

[[nodiscard]] constexpr auto names_of(TimelineStall /*of*/) noexcept {
  return name_table("budget", "run-ahead", "turn");
}

namespace timeline {

inline constexpr std::size_t kStallReasons = names_of(TimelineStall{}).size();

/// A batch that was held back.
struct StalledBatch {
  std::uint32_t number = 0;
  std::uint32_t kind = 0;     ///< index into the process's names
  std::uint64_t stalls = 0;   ///< number of waits
  std::uint64_t stalled = 0;  ///< their time
  std::uint64_t peak = 0;     ///< peak in bytes when it was closed
};
/// Returns them, the longest time first. A stall without a batch belongs to the batch that its
/// thread began next.
[[nodiscard]] std::vector<StalledBatch> stalled_batches(const Index& index);

/// Number and time of waits.
struct Waits {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};
/// What held a process's frontends back.
struct StallFigures {
  /// kStall, by reason. Waits of allocations, kPoolWait and kMemoryWait, are for the budget.
  std::array<Waits, kStallReasons> admission{};
  Waits pace{};  ///< kPace
  std::uint64_t failures = 0;

  /// The sum over all reasons.
  [[nodiscard]] Waits stalls() const noexcept;
};
[[nodiscard]] StallFigures stall_figures(const Index& index);

}  // namespace timeline
}  // namespace weir
