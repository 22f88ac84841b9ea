#pragma once

// The interface of profilers, which record a device's own activity.

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/timeline/sink.hpp"

namespace weir::timeline {

/// A profiler. Callers make one call at a time, from any thread. It gathers by itself between
/// calls.
class ActivitySource {
 public:
  ActivitySource() = default;
  ActivitySource(const ActivitySource&) = delete;
  ActivitySource& operator=(const ActivitySource&) = delete;
  virtual ~ActivitySource() = default;

  /// Begins to gather. Returns an empty text, or a line with the reason if it cannot.
  [[nodiscard]] virtual std::string start() = 0;
  virtual void stop() noexcept = 0;
  /// Appends the records since the last call. Times are nanoseconds of CLOCK_MONOTONIC. Names are
  /// numbers from `sink`. Threads are the system's numbers (gettid); 0: unknown. `kAll` includes
  /// what the driver still keeps, for the end.
  enum class Collect : std::uint8_t { kReady, kAll };
  virtual void collect(Collect what, TimelineSink& sink,
                       std::vector<TimelineRecord>& records) noexcept = 0;
  /// The total number of records that the profiler dropped.
  [[nodiscard]] virtual std::uint64_t lost() const noexcept = 0;
};

}  // namespace weir::timeline
