#pragma once

// The seam of profilers: where records of a device's own activity come from.

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/timeline/sink.hpp"

namespace weir::timeline {

/// A profiler. Its calls come one at a time, from any thread; between them it gathers by itself.
class ActivitySource {
 public:
  ActivitySource() = default;
  ActivitySource(const ActivitySource&) = delete;
  ActivitySource& operator=(const ActivitySource&) = delete;
  virtual ~ActivitySource() = default;

  /// Begins to gather. Returns a line for people where it cannot, and gathers nothing then; empty
  /// where all is well.
  [[nodiscard]] virtual std::string start() = 0;
  virtual void stop() noexcept = 0;
  /// Appends what has come since. Times are nanoseconds of CLOCK_MONOTONIC, names are numbers that
  /// `sink` gave, threads are the system's numbers (gettid); 0: not known. `all`: also what the
  /// driver still keeps, at the end.
  enum class Collect : std::uint8_t { kReady, kAll };
  virtual void collect(Collect what, TimelineSink& sink,
                       std::vector<TimelineRecord>& records) noexcept = 0;
  /// Records that the profiler had no room for, in all.
  [[nodiscard]] virtual std::uint64_t lost() const noexcept = 0;
};

}  // namespace weir::timeline
