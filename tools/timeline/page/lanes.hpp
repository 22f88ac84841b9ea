#pragma once

// What streams and threads did over time, as lanes under the memory.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/model/timeline.hpp"
#include "tools/timeline/page/runs.hpp"
#include "tools/timeline/page/series.hpp"

namespace weir::timeline {

/// What a run is; page.js has a colour and a word for each.
enum class Category : std::uint8_t {
  kCompute,
  kCopyIn,
  kCopyOut,
  kCopy,
  kSet,
  kStreamWait,  ///< a stream waits for another
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
  kIdle,  ///< and for each IdleCause one more, in its order
};

/// In the order in which the page shows them.
enum class LaneKind : std::uint8_t {
  kStream,  ///< of a device, as the scheduler told
  kDevice,  ///< the same, as a profiler told
  kIdle,    ///< of a device: when it had nothing to do, and why
  kWaits,   ///< of one thread
  kSubmits,
  kCalls,
  kOverhead,
};

struct Lane {
  LaneKind kind{};
  std::string name;
  std::uint64_t busy = 0;  ///< sum of its slices, in nanoseconds
  std::vector<Run> runs;   ///< names are numbers of the process's names
};

/// At most `most` lanes; those that do least are left out.
struct Lanes {
  std::vector<Lane> lanes;
  std::size_t left_out = 0;
};
[[nodiscard]] Lanes lanes_of(const Process& process, Columns columns, std::size_t most = 24);

/// Batches that are open or in flight over time: rows of time, both together, both together again,
/// open, in flight, and the number of the youngest.
[[nodiscard]] Series batches_over_time(const Process& process, Columns columns);

}  // namespace weir::timeline
