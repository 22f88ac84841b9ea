#include "allocator/share/share_policy.hpp"

#include <algorithm>

namespace weir {
namespace {

/// Returns the sum of `part` over the slots, or the budget if it is no less: slots of others may
/// hold any number.
template <typename Part>
Bytes sum_within(std::span<const ShareSlot> slots, Bytes budget, const Part& part) {
  Bytes left = budget;
  for (const ShareSlot& slot : slots) left = minus_or_zero(left, part(slot));
  return budget - left;
}

Bytes floor_of(const ShareSlot& slot) { return slot.floor; }
Bytes lease_of(const ShareSlot& slot) { return slot.lease; }

/// Returns what the others do not lease. A process that attaches leases nothing yet.
Bytes not_leased(std::span<const ShareSlot> others, Bytes budget) {
  return budget - sum_within(others, budget, lease_of);
}

}  // namespace

Bytes claimed(const ShareSlot& slot) noexcept { return std::max(slot.floor, slot.lease); }

Bytes left_by(std::span<const ShareSlot> others, Bytes budget) noexcept {
  return budget - sum_within(others, budget, claimed);
}

bool floors_fit(std::span<const ShareSlot> others, Bytes budget, Bytes floor) noexcept {
  return floor <= budget - sum_within(others, budget, floor_of);
}

bool is_wanted(std::span<const ShareSlot> others) noexcept {
  return std::ranges::any_of(others, [](const ShareSlot& slot) {
    return slot.wanted > slot.lease || slot.floor > slot.lease;
  });
}

bool has_to_return(std::span<const ShareSlot> others, Bytes budget, const ShareSlot& own) noexcept {
  return is_wanted(others) || own.lease > not_leased(others, budget);
}

Bytes fair_part(std::span<const ShareSlot> others, Bytes budget, const ShareSlot& own) noexcept {
  const Bytes taken = sum_within(others, budget, floor_of);
  const Bytes free = minus_or_zero(budget - taken, own.floor);
  return own.floor + Bytes{free.count / (others.size() + 1)};
}

Bytes raised_lease(std::span<const ShareSlot> others, Bytes budget, const ShareSlot& own,
                   Bytes needed) noexcept {
  Bytes most = left_by(others, budget);
  if (is_wanted(others)) most = std::min(most, fair_part(others, budget, own));
  return std::max(own.lease, std::min(needed, most));
}

Bytes kept_lease(std::span<const ShareSlot> others, Bytes budget, const ShareSlot& own,
                 const ShareUse& use) noexcept {
  Bytes most = std::min(own.lease, not_leased(others, budget));
  if (is_wanted(others)) most = std::min({most, use.held, fair_part(others, budget, own)});
  return std::min(own.lease, std::max({own.floor, use.committed, most}));
}

}  // namespace weir
