#pragma once

// Who may take a block while others wait for memory. Pure; Pool::take_own applies it.

#include <cstdint>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Rounds through the stages in which others may pass the first in line.
inline constexpr std::uint64_t kRoundsPassedBy = 16;

/// The waiting request that is first in line.
struct FirstInLine {
  Bytes block;                    ///< the size it waits for
  std::uint64_t rounds_left = 0;  ///< rounds in which others may still pass
};

/// Returns whether a request may take a cached block of its own stream before `first` is served.
/// `live` counts allocated bytes and growths under way. It may if the device alone can still make
/// room for the first: once all work is passed, everything not live is room. This needs blocks that
/// are whole segments. In other kinds the block may be part of what the first needs, so nobody
/// passes (`hits_pass_by` in pool_kind.hpp).
[[nodiscard]] constexpr bool may_pass_by(const FirstInLine& first, bool hits_pass_by, Bytes block,
                                         Bytes live, Bytes budget) noexcept {
  return hits_pass_by && first.rounds_left != 0 &&
         first.block <= minus_or_zero(budget, live + block);
}

}  // namespace weir
