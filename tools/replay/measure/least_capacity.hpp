#pragma once

// Searches the least capacity at which something completes.

#include <functional>
#include <optional>

#include "allocator/base/bytes.hpp"

namespace weir::replay {

struct LeastCapacity {
  Bytes capacity;      ///< the smallest capacity that was tried and completed
  Bytes failed;        ///< the largest smaller capacity that was tried and failed; zero if none
  unsigned tries = 0;  ///< in all

  friend bool operator==(const LeastCapacity&, const LeastCapacity&) = default;
};

struct CapacitySearch {
  Bytes low;   ///< the lower bound: the peak of requested bytes
  Bytes high;  ///< where the search begins; doubled until it completes
  Bytes most;  ///< the upper bound
  Bytes step;  ///< ends the search once `capacity` and `failed` are this close; above zero
};

/// Searches by bisection. The search assumes that what completes in one capacity also completes in
/// a larger one. No allocator promises that: the reported capacity did complete, but an untried
/// smaller one might, too. Returns nothing if even `most` fails.
[[nodiscard]] std::optional<LeastCapacity> least_capacity(
    const CapacitySearch& search, const std::function<bool(Bytes)>& completes);

/// The resolution of the search for a trace with this peak: a thousandth, at least one byte.
[[nodiscard]] constexpr Bytes search_step(Bytes peak) noexcept {
  return {peak.count / 1000 > 0 ? peak.count / 1000 : 1};
}

}  // namespace weir::replay
