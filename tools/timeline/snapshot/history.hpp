#pragma once

// Orders the history of one pool's memory for PyTorch's viewer, without anything that the viewer
// fails on.

#include <cstdint>
#include <map>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// A range of addresses.
struct Stretch {
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;  ///< requested bytes of a block
  TimelineRecord record{};      ///< the record that made it
};
using Stretches = std::map<std::uint64_t, Stretch>;  ///< by address; none overlap

/// An event in the viewer's terms.
struct HistoryEntry {
  enum class Action : std::uint8_t { kAllocate, kFree, kReserve, kRelease, kOutOfMemory };
  Action action{};
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< as requested, for blocks
  TimelineRecord record{};
  std::uint64_t device_free = 0;  ///< for kOutOfMemory: bytes of the budget that were not reserved
};

struct History {
  std::vector<HistoryEntry> entries;
  Stretches segments;  ///< at the end
  Stretches blocks;    ///< at the end, each within a segment
};

/// Returns the history of pool `source`. If pages move between addresses, or the recording began
/// late, the segments are unknown: then there are no segment entries, and the segments are all
/// addresses that ever held a block. Leaves out frees of unknown blocks. A block that is allocated
/// over another one frees the other first.
[[nodiscard]] History make_history(const Process& process, std::uint16_t source);

}  // namespace weir::timeline
