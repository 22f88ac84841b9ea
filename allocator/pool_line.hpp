#pragma once

// Who may take a block while others wait for memory: a pure function, which Pool::take_own applies.

#include <cstdint>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Rounds of the first in line through the stages in which others may pass it by.
inline constexpr std::uint64_t kRoundsPassedBy = 16;

/// The request that waits for memory and is first in line.
struct FirstInLine {
  Bytes block;                    ///< that it waits for
  std::uint64_t rounds_left = 0;  ///< in which others may pass it by
};

/// Whether a request may take a cached block of its own stream before `first` is served. `live` is
/// what is handed out, and growths under way. It may where the first can still be served by the
/// device alone: when that has passed everything, all that is not live makes room. This is exact
/// where each block is all of a segment. In the other kinds the block may be a piece of what the
/// first waits for, so nobody passes by: the kind says so in `hits_pass_by` (pool_kind.hpp).
[[nodiscard]] constexpr bool may_pass_by(const FirstInLine& first, bool hits_pass_by, Bytes block,
                                         Bytes live, Bytes budget) noexcept {
  return hits_pass_by && first.rounds_left != 0 &&
         first.block <= minus_or_zero(budget, live + block);
}

}  // namespace weir
