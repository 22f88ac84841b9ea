#pragma once

// The history of one pool's memory, put in order: what PyTorch's viewer draws, and nothing that it
// would fail on.

#include <cstdint>
#include <map>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// A stretch of addresses.
struct Stretch {
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;  ///< of a block
  TimelineRecord record{};      ///< that made it
};
using Stretches = std::map<std::uint64_t, Stretch>;  ///< by address; none overlap

/// What happened, as the viewer calls it.
struct HistoryEntry {
  enum class Action : std::uint8_t { kAllocate, kFree, kReserve, kRelease, kOutOfMemory };
  Action action{};
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< of blocks: as requested
  TimelineRecord record{};
  std::uint64_t device_free = 0;  ///< of kOutOfMemory: bytes of the budget that were not reserved
};

struct History {
  std::vector<HistoryEntry> entries;
  Stretches segments;  ///< at the end
  Stretches blocks;    ///< at the end, each within a segment
};

/// The history of pool `source`. Where pages move between addresses, or the recording began late,
/// the segments are not known: then there are no entries of them, and they are all addresses that
/// ever held a block. Frees of blocks that are not known are left out; a block that is allocated
/// where another is was freed before.
[[nodiscard]] History make_history(const Process& process, std::uint16_t source);

}  // namespace weir::timeline
