#pragma once

// A process whose batches were admitted under known run-ahead targets.

#include <array>
#include <cstdint>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::testing {

/// Records are a millisecond apart: counters have one sample in 100 us.
inline constexpr std::uint64_t kTargetStep = 1'000'000;
/// Nanoseconds. Zero: there was no target, or the file is from before targets were recorded.
inline constexpr std::array<std::uint64_t, 5> kTargets{0, 2'000'000, 5'000'000, 0, 4'500'000};

/// Batch i, from 1, is admitted after i ms under the i-th target.
[[nodiscard]] inline Process target_process() {
  Process process;
  process.names = {"", "train"};
  process.complete = true;
  std::uint32_t batch = 0;
  for (const std::uint64_t target : kTargets) {
    ++batch;
    process.records.push_back({.begin = batch * kTargetStep,
                               .end = batch * kTargetStep,
                               .requested = target,
                               .batch = batch,
                               .name = 1,
                               .kind = TimelineKind::kAdmit});
  }
  return process;
}

/// The same without targets.
[[nodiscard]] inline Process process_without_targets() {
  Process process = target_process();
  for (TimelineRecord& record : process.records) record.requested = 0;
  return process;
}

}  // namespace weir::timeline::testing
