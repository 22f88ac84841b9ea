#pragma once

// Reads the records of all threads, converts their times and writes them, on the recorder's thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/tick_clock.hpp"
#include "tools/timeline/model/timeline.hpp"
#include "tools/timeline/recorder/chunks.hpp"
#include "tools/timeline/recorder/file.hpp"

namespace weir::timeline {

// Converts ticks of the recorder's clock to nanoseconds of the machine's monotonic clock.

/// Both clocks at one moment.
struct ClockPair {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;  ///< of CLOCK_MONOTONIC
};

/// Reads both clocks, some 50 ns apart.
[[nodiscard]] ClockPair read_clocks(const TickClock& clock) noexcept;

/// Interpolates between pairs. The map is monotonic, and a tick always has the same time, so nested
/// slices stay nested. Not thread-safe.
class ClockMap {
 public:
  /// `ns_per_tick` applies to ticks before `first`.
  ClockMap(ClockPair first, double ns_per_tick);

  /// Adds a pair. Ignores one that is not later than the last one on both clocks.
  void add(ClockPair pair);
  /// Returns the time of a tick. Ticks after the last pair get that pair's time, so add a pair
  /// first.
  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const noexcept;
  /// The average over all pairs.
  [[nodiscard]] double ns_per_tick() const noexcept;

  /// The most pairs to keep: a hundred minutes at ten per second. Earlier ticks use the first
  /// remaining line.
  static constexpr std::size_t kMostPairs = std::size_t{1} << 16U;

 private:
  ClockPair first_;
  double first_rate_;
  std::vector<ClockPair> pairs_;
};

/// Where records are written. `file` may be null if `writer` uses no file.
struct RecorderOutput {
  std::unique_ptr<TimelineFile> file;
  std::unique_ptr<Writer> writer;
};

/// The limits of the last seconds, which are kept to explain a failure.
struct RecentLimits {
  std::uint64_t ns = 10'000'000'000;
  std::size_t records = 300'000;
};

/// Records that do not come from chunks.
struct MoreRecords {
  std::vector<TimelineRecord> in_ticks;
  std::vector<TimelineRecord> monotonic;  ///< nanoseconds of CLOCK_MONOTONIC
};

/// Not thread-safe.
class Drain {
 public:
  /// `recent.records` is 0 if the last seconds are not needed.
  Drain(const TickClock& clock, ChunkStore& chunks, const Names& names, RecorderOutput output,
        RecentLimits recent);

  /// Sets the recording's zero to now, and fills in the times of `info`.
  void begin(ProcessInfo& info);
  /// Call before the first round.
  void write_head(const ProcessInfo& info);
  /// Writes all records made before the call, and `more`, and passes them to the file. Calls
  /// `advance` now and then. See failure() for the result.
  void round(MoreRecords more, const std::function<void()>& advance);
  /// Ends the file.
  void finish(std::uint64_t lost, const std::function<void()>& advance);

  /// Why writing stopped; empty if it has not.
  [[nodiscard]] std::string_view failure() const noexcept;
  /// Stops writing; records are still read and counted.
  void abandon() noexcept { is_abandoned_ = true; }
  [[nodiscard]] TimelineFile* file() const noexcept { return output_.file.get(); }
  /// The number of records in the file.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  /// The number of records that were read but could not be written.
  [[nodiscard]] std::uint64_t unwritten() const noexcept { return unwritten_; }
  /// The records of the last seconds, by `begin`.
  [[nodiscard]] std::vector<TimelineRecord> recent() const;
  /// The names of streams and threads so far.
  [[nodiscard]] std::vector<TimelineRecord> tracks() const;
  /// Converts ticks.
  [[nodiscard]] std::uint64_t ns_since_zero(std::uint64_t ticks) const noexcept;
  [[nodiscard]] double ns_per_tick() const noexcept { return map_.ns_per_tick(); }

 private:
  /// Learns the system's numbers of the recorder's threads.
  void note_threads();
  /// Returns the recorder's number of a thread that a profiler named; a number of its own if the
  /// thread is unknown to the recorder.
  [[nodiscard]] std::uint32_t thread_of(std::uint32_t system_thread);
  void read(Chunk& chunk);
  void convert(std::span<TimelineRecord> records) const noexcept;
  void write_batch();
  void flush();
  void keep_recent();

  const TickClock& clock_;
  ChunkStore& chunks_;
  const Names& names_;
  const RecorderOutput output_;
  const RecentLimits recent_limits_;
  ClockMap map_;
  std::uint64_t zero_ns_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t unwritten_ = 0;
  std::uint64_t unflushed_ = 0;  ///< given to the writer since its last flush
  bool is_abandoned_ = false;
  std::vector<TimelineRecord> batch_;
  std::vector<Chunk*> full_;
  std::vector<Chunk*> in_use_;
  std::deque<TimelineRecord> recent_;
  std::map<std::uint32_t, std::uint32_t> threads_;  ///< the recorder's numbers, by the system's
  std::map<std::pair<std::uint64_t, std::uint64_t>, TimelineRecord> tracks_;
};

}  // namespace weir::timeline
