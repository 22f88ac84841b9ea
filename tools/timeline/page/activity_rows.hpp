#pragma once

// The activity of streams and threads over time, as rows below the memory picture.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/model/timeline.hpp"
#include "tools/timeline/page/series.hpp"

namespace weir::timeline {

/// The category of a run; page.js has a colour and a word for each.
enum class Category : std::uint8_t {
  kCompute,
  kCopyIn,
  kCopyOut,
  kCopy,
  kSet,
  kStreamWait,  ///< a stream waits for another one
  kStallBudget,
  kStallRunAhead,
  kStallTurn,  ///< another producer's turn, or other batches are open
  kPoolWait,
  kMemoryWait,
  kBarrier,
  kSync,
  kSubmit,
  kCall,
  kOverhead,
  kIdle,  ///< one value for each IdleCause follows, in its order
};

/// In the order of the page.
enum class RowKind : std::uint8_t {
  kStream,  ///< a stream of a device, from the scheduler
  kDevice,  ///< a stream of a device, from a profiler
  kIdle,    ///< the idle times of a device and their causes
  kWaits,   ///< waits of one thread
  kSubmits,
  kCalls,
  kOverhead,
};

struct ActivityRow {
  RowKind kind{};
  std::string name;
  std::uint64_t busy = 0;  ///< sum of its slices, in nanoseconds
  std::vector<Run> runs;   ///< their names are indices into the process's names
};

/// At most `most` rows; the least busy ones are left out.
struct ActivityRows {
  std::vector<ActivityRow> rows;
  std::size_t left_out = 0;
};
[[nodiscard]] ActivityRows activity_rows(const Process& process, Columns columns,
                                         std::size_t most = 24);

/// Returns open and in-flight batches over time. A row has the time, the sum of both, the sum
/// again, open, in flight, and the number of the youngest.
[[nodiscard]] Series batches_over_time(const Process& process, Columns columns);

}  // namespace weir::timeline
