#pragma once

// The least capacity at which something completes, found by trying.

#include <functional>
#include <optional>

#include "allocator/base/bytes.hpp"

namespace weir::replay {

struct LeastCapacity {
  Bytes capacity;      ///< the smallest that was tried and completed
  Bytes failed;        ///< the largest below it that was tried and did not; zero where none was
  unsigned tries = 0;  ///< in all

  friend bool operator==(const LeastCapacity&, const LeastCapacity&) = default;
};

struct CapacitySearch {
  Bytes low;   ///< nothing below it is tried: what is asked for at one time
  Bytes high;  ///< where the search begins; it is doubled until it completes
  Bytes most;  ///< nothing above it is tried
  Bytes step;  ///< the search ends once `capacity` and `failed` are no further apart; above zero
};

/// Searches by halving, from the ends inward. That assumes that what completes in some capacity
/// also completes in a larger one, which no allocator promises: what is reported did complete, and
/// a smaller one that was not tried might. Nothing where not even `most` does.
[[nodiscard]] std::optional<LeastCapacity> least_capacity(
    const CapacitySearch& search, const std::function<bool(Bytes)>& completes);

/// A thousandth of `peak`, at least a byte: how far the search goes for a trace of that peak.
[[nodiscard]] constexpr Bytes search_step(Bytes peak) noexcept {
  return {peak.count / 1000 > 0 ? peak.count / 1000 : 1};
}

}  // namespace weir::replay
