#pragma once

// What a timeline comes to, in figures and in words.

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
  std::uint64_t duration = 0;  ///< recorded, in nanoseconds
  bool complete = false;
  bool began_late = false;  ///< something was there before the recording began
  std::uint64_t lost = 0;
  std::uint64_t dropped = 0;  ///< records of no kind that is known

  std::string pool{};      ///< main_pool; empty where there is none
  std::uint64_t peak = 0;  ///< of held bytes: allocated + awaiting
  std::uint64_t peak_at = 0;
  std::uint64_t budget = 0;  ///< in force then; 0: not known
  std::uint32_t peak_batch = 0;
  std::uint64_t peak_reserved = 0;
  std::uint64_t batches = 0;
  StallFigures stalls{};
  double stalled_share = 0;  ///< stalls of admission, of the time recorded
  std::uint64_t barriers = 0;

  bool has_device = false;
  std::uint64_t device_time = 0;  ///< of all devices, as are the next
  std::uint64_t busy = 0;
  std::uint64_t idle = 0;
  IdleTimes idle_causes{};
  /// Share of the device time.
  [[nodiscard]] double idle_share() const noexcept;
  [[nodiscard]] double idle_share(IdleCause cause) const noexcept;
};
/// What `summarize` needs, so that a page computes it once.
struct SummaryParts {
  std::vector<PoolSeries> pools{};
  std::vector<DeviceIdle> devices{};
};
[[nodiscard]] Summary summarize(const Index& index, const SummaryParts& parts);
[[nodiscard]] Summary summarize(const Index& index);

/// `peak 5.8 of 6 GiB at 2.31 s, in batch 41; 12 stalls, 0.4% of the time; device idle 0.7%, of
/// that 0.1 throttled, 0.4 loader, 0.2 barriers; 0 events lost`. That the recording was cut, began
/// late or lost events is said first. One line without its end.
[[nodiscard]] std::string in_words(const Summary& summary);
/// A line for each process, and for several one of all of them.
[[nodiscard]] std::vector<std::string> in_words(const std::vector<Summary>& summaries);

/// The lines that the recording has for whoever reads it. Of many the first, and how many more.
[[nodiscard]] std::vector<std::string> notes(const Index& index);

/// `2.31 s`, `41.0 ms`, `7.2 us`, `12 ns`.
[[nodiscard]] std::string format_time(std::uint64_t nanoseconds);
/// `5.8 GiB`: three digits, without zeros behind the point.
[[nodiscard]] std::string format_amount(std::uint64_t bytes);
/// `0.7%`; of the share 1/1 `100%`.
[[nodiscard]] std::string format_share(double share);

}  // namespace weir::timeline
