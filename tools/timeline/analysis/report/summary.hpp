#pragma once

// Summarises a timeline in figures and in words.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/batches.hpp"
#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/analysis/idle.hpp"

namespace weir::timeline {

struct Summary {
  std::string process{};  ///< `weir-train (process 71, rank 0)`
  std::uint64_t events = 0;
  std::uint64_t duration = 0;  ///< recorded nanoseconds
  bool complete = false;
  bool began_late = false;  ///< something existed before the recording began
  std::uint64_t lost = 0;
  std::uint64_t dropped = 0;  ///< records of unknown kinds

  std::string pool{};      ///< name of main_pool; empty if there is none
  std::uint64_t peak = 0;  ///< of held bytes: allocated + awaiting
  std::uint64_t peak_at = 0;
  std::uint64_t budget = 0;  ///< the budget at that time; 0: unknown
  std::uint32_t peak_batch = 0;
  std::uint64_t peak_reserved = 0;
  std::uint64_t batches = 0;
  StallFigures stalls{};
  double stalled_share = 0;  ///< admission stalls as a share of the recorded time
  std::uint64_t barriers = 0;

  bool has_device = false;
  std::uint64_t device_time = 0;  ///< of all devices, like the next fields
  std::uint64_t busy = 0;
  std::uint64_t idle = 0;
  IdleTimes idle_causes{};
  /// Idle share of the device time.
  [[nodiscard]] double idle_share() const noexcept;
  [[nodiscard]] double idle_share(IdleCause cause) const noexcept;
};
/// The inputs of `summarize`, so that a page computes them once.
struct SummaryParts {
  std::vector<PoolPeaks> pools{};
  std::vector<DeviceIdle> devices{};
};
[[nodiscard]] Summary summarize(const Index& index, const SummaryParts& parts);
[[nodiscard]] Summary summarize(const Index& index);

/// `peak 5.8 of 6 GiB at 2.31 s, in batch 41; 12 stalls, 0.4% of the time; device idle 0.7%: loader
/// 0.4%, barrier 0.2%, throttled 0.1%; 0 events lost`. Says first if the recording was
/// truncated, began late or lost events. One line without a newline.
[[nodiscard]] std::string in_words(const Summary& summary);
/// Returns a line for each process, preceded by one for all if there are several.
[[nodiscard]] std::vector<std::string> in_words(const std::vector<Summary>& summaries);

/// Returns the recording's notes for its readers: the first ones, and how many more there are.
[[nodiscard]] std::vector<std::string> notes(const Index& index);

/// `2.31 s`, `41.0 ms`, `7.2 us`, `12 ns`.
[[nodiscard]] std::string format_time(std::uint64_t nanoseconds);
/// `5.8 GiB`: three digits, without trailing zeros.
[[nodiscard]] std::string format_amount(std::uint64_t bytes);
/// `0.7%`; `100%` for a share of 1.
[[nodiscard]] std::string format_share(double share);

}  // namespace weir::timeline
