#pragma once

// Breaks down a pool's reserved bytes at their peak.

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/replay/read/trace.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::replay {

struct AddressRange {
  std::uint64_t begin = 0, end = 0;
};

/// A pool's memory at one moment. Ranges are in address order and do not overlap.
struct Holdings {
  std::vector<AddressRange> live;  ///< allocated, after rounding; all of it in `held`
  std::vector<AddressRange> held;  ///< obtained from the driver; each begins on a page boundary
  Bytes page;                      ///< above zero
  Bytes reserved;                  ///< counts each page once, also pages mapped twice or not at all
  Bytes requested;                 ///< live bytes as requested
};

/// The parts of `reserved`; they add up to it.
struct Breakdown {
  std::uint64_t operation = 0;  ///< the operation after which this held, from 1
  Bytes page;
  Bytes reserved;
  Bytes requested;
  Bytes rounding;  ///< allocated but not requested
  // Free, on pages with live blocks:
  Bytes page_ends;  ///< next to a page without live blocks or to the end of held memory
  Bytes holes;      ///< between two live blocks
  // Free, on other pages:
  Bytes whole_pages;
};

[[nodiscard]] Breakdown break_down(const Holdings& now);

/// Replays `trace` twice against `make(capacity)` and breaks down the reserved bytes after the
/// first operation that reached their peak. An operation that found no memory does not count.
/// Returns nothing if nothing was reserved, or if the subject is not a PoolSubject: other subjects
/// do not report what they hold.
[[nodiscard]] std::optional<Breakdown> break_down_peak(const Trace& trace, const MakeSubject& make,
                                                       Bytes capacity);

}  // namespace weir::replay
