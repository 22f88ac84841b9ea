#pragma once

// Who gets how much of a shared budget, as pure functions. docs/share.md follows one lease.
//
// Together they guarantee: the leases' sum never exceeds the budget while the slots of others say
// what these have; a process keeps at least its floor, whatever the slots say; nothing here is ever
// awaited. A process that gets less than it wants goes on with what it has, so processes cannot
// wait for each other in a circle.

#include <span>

#include "allocator/base/bytes.hpp"

namespace weir {

/// One process's part of the budget.
struct ShareSlot {
  Bytes floor{};   ///< never taken from it
  Bytes lease{};   ///< what it may use now; below the floor only while it is attaching
  Bytes wanted{};  ///< the lease that it asked for last

  friend bool operator==(const ShareSlot&, const ShareSlot&) = default;
};

/// Returns the bytes that nobody else may have: the lease, or the floor where that is more.
[[nodiscard]] Bytes claimed(const ShareSlot& slot) noexcept;

/// Returns what is left of `budget` beside the claims of `others`; zero if they exceed it.
[[nodiscard]] Bytes left_by(std::span<const ShareSlot> others, Bytes budget) noexcept;

/// Returns true if `floor` fits beside the floors of `others`. Attaching is refused otherwise.
[[nodiscard]] bool floors_fit(std::span<const ShareSlot> others, Bytes budget,
                              Bytes floor) noexcept;

/// Returns true if one of `others` was refused memory that it still wants.
[[nodiscard]] bool is_wanted(std::span<const ShareSlot> others) noexcept;

/// Returns true if the process has to return what it does not need: others want more, or more is
/// leased than there is. The latter is so after another's record was forged, and then mended.
[[nodiscard]] bool has_to_return(std::span<const ShareSlot> others, Bytes budget,
                                 const ShareSlot& own) noexcept;

/// Returns the process's part of the budget while others want more: its floor, and an equal part of
/// what no floor takes. The fair parts of all processes fit in the budget.
[[nodiscard]] Bytes fair_part(std::span<const ShareSlot> others, Bytes budget,
                              const ShareSlot& own) noexcept;

/// Returns the lease of a process that asks for `needed` bytes in total: at least what it has, at
/// most what the others leave. While others want more, it grows up to the fair part only.
[[nodiscard]] Bytes raised_lease(std::span<const ShareSlot> others, Bytes budget,
                                 const ShareSlot& own, Bytes needed) noexcept;

/// What a process uses of its lease.
struct ShareUse {
  Bytes held{};       ///< by live memory and all batches, with what is promised to open ones
  Bytes committed{};  ///< the part of it that no submitted work frees by itself
};

/// Returns the lease that a process keeps while others want more: what is committed, and what
/// submitted batches hold up to the fair part. The rest comes back as these batches settle. Where
/// more is leased than there is, it keeps what the others leave, but at least its floor and what is
/// committed.
[[nodiscard]] Bytes kept_lease(std::span<const ShareSlot> others, Bytes budget,
                               const ShareSlot& own, const ShareUse& use) noexcept;

}  // namespace weir
