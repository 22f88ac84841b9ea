#pragma once

// When a checkpoint is due. A pure function.

#include <chrono>
#include <cstdint>

namespace weir {

/// Every so many batches, after so much time, or whichever comes first. Zero: not for this reason.
struct CheckpointSchedule {
  std::uint64_t batches = 0;
  std::chrono::nanoseconds time{};
};

/// Returns whether a checkpoint is due `batches` whole batches and `time` after the last one was.
[[nodiscard]] constexpr bool due(const CheckpointSchedule& schedule, std::uint64_t batches,
                                 std::chrono::nanoseconds time) noexcept {
  if (batches == 0) return false;  // nothing new
  return (schedule.batches != 0 && batches >= schedule.batches) ||
         (schedule.time.count() != 0 && time >= schedule.time);
}

}  // namespace weir
