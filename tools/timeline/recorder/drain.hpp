#pragma once

// What the recorder's thread does with the records of all threads: it reads them, converts their
// times and writes them.

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
#include "tools/timeline/recorder/clock_map.hpp"
#include "tools/timeline/recorder/file.hpp"

namespace weir::timeline {

/// Where records go in the end. `file` may be null: then `writer` knows of no file.
struct RecorderOutput {
  std::unique_ptr<TimelineFile> file;
  std::unique_ptr<Writer> writer;
};

/// The last seconds, for whoever wants to look at what led to a failure.
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
  /// `recent.records` is 0 where nobody will ask for the last seconds.
  Drain(const TickClock& clock, ChunkStore& chunks, const Names& names, RecorderOutput output,
        RecentLimits recent);

  /// The recording's zero is now. Fills in the times of `info`.
  void begin(ProcessInfo& info);
  /// Before the first round.
  void write_head(const ProcessInfo& info);
  /// Writes all that was recorded before the call, and `more`, and hands it to the file. `advance`
  /// is called now and then. Afterwards failure() says whether it worked.
  void round(MoreRecords more, const std::function<void()>& advance);
  /// Ends the file.
  void finish(std::uint64_t lost, const std::function<void()>& advance);

  /// Why nothing more is written; empty as long as all is well.
  [[nodiscard]] std::string_view failure() const noexcept;
  /// Writes no more; records are still read, and counted.
  void abandon() noexcept { is_abandoned_ = true; }
  [[nodiscard]] TimelineFile* file() const noexcept { return output_.file.get(); }
  /// Records that are in the file.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  /// Records that were read and could not be written.
  [[nodiscard]] std::uint64_t unwritten() const noexcept { return unwritten_; }
  /// Records of the last seconds, by `begin`.
  [[nodiscard]] std::vector<TimelineRecord> recent() const;
  /// The names of streams and threads so far.
  [[nodiscard]] std::vector<TimelineRecord> tracks() const;
  /// Of ticks.
  [[nodiscard]] std::uint64_t ns_since_zero(std::uint64_t ticks) const noexcept;
  [[nodiscard]] double ns_per_tick() const noexcept { return map_.ns_per_tick(); }

 private:
  /// Learns which threads of the recorder are which of the system's.
  void note_threads();
  /// The recorder's number of a thread that a profiler named; one of its own for a thread that told
  /// the recorder nothing.
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
  std::map<std::uint32_t, std::uint32_t> threads_;  ///< the recorder's, by the system's number
  std::map<std::pair<std::uint64_t, std::uint64_t>, TimelineRecord> tracks_;
};

}  // namespace weir::timeline
