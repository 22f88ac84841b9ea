#pragma once

// Where the bytes were that a pool had reserved when it had the most.

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/replay/read/trace.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::replay {

struct AddressRange {
  std::uint64_t begin = 0, end = 0;
};

/// What a pool has at one moment. Ranges are in the order of their addresses and do not overlap.
struct Holdings {
  std::vector<AddressRange> live;  ///< handed out, after rounding; all of it in `held`
  std::vector<AddressRange> held;  ///< obtained from the driver; each begins with a page
  Bytes page;                      ///< above zero
  Bytes reserved;                  ///< pages once each, also those that are mapped twice or nowhere
  Bytes requested;                 ///< what is live, by what was asked for
};

/// All of `reserved`: the other parts add up to it.
struct Breakdown {
  std::uint64_t operation = 0;  ///< after which it was so, from 1
  Bytes page;
  Bytes reserved;
  Bytes requested;
  Bytes rounding;  ///< handed out and not requested
  // Free, on pages on which something lives:
  Bytes page_ends;  ///< in runs up to a page on which nothing lives, or up to no memory
  Bytes holes;      ///< in runs between two live blocks
  // Free, on other pages:
  Bytes whole_pages;
};

[[nodiscard]] Breakdown break_down(const Holdings& now);

/// Replays `trace` against what `make` makes of `capacity`. Breaks down what was reserved after the
/// first operation after which it was the most; an operation that found no memory is none of them.
/// Nothing where nothing was reserved, or where it makes no PoolSubject, since others do not tell
/// what they hold. Replays it twice.
[[nodiscard]] std::optional<Breakdown> break_down_peak(const Trace& trace, const MakeSubject& make,
                                                       Bytes capacity);

}  // namespace weir::replay
