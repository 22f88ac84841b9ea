// libFuzzer's target: the reader of a shared budget's file, and the policy over what it says.
// Whatever the bytes: what is believed is within bounds, and a process keeps its floor and its
// lease.

#include <algorithm>
#include <string_view>
#include <vector>

#include "allocator/share/share_layout.hpp"
#include "allocator/share/share_policy.hpp"
#include "fuzz.hpp"

namespace weir::testing {
namespace {

/// What is read besides the file, and what a process has and asks for.
struct Head {
  std::uint64_t read = 0;
  std::uint64_t file_size = 0;
  std::uint32_t owner = 0;
  std::uint32_t is_group = 0;
  std::uint64_t seals = 0;  ///< one bit for each record whose check is made right
  std::uint64_t floor = 0;
  std::uint64_t lease = 0;
  std::uint64_t needed = 0;
  std::uint64_t held = 0;
};

void check_policy(const std::vector<ShareSlot>& others, Bytes budget, const Head& head) {
  const Bytes floor{1 + head.floor % budget.count};
  const Bytes lease{floor.count + head.lease % (budget.count - floor.count + 1)};
  const ShareSlot own{floor, lease, {head.needed}};
  require(left_by(others, budget) <= budget);
  require(!floors_fit(others, budget, floor) || floor <= budget);
  const Bytes fair = fair_part(others, budget, own);
  require(fair >= floor && fair <= budget);
  const Bytes raised = raised_lease(others, budget, own, {head.needed});
  require(raised >= lease && raised <= budget);
  require(raised == lease || raised <= left_by(others, budget));
  const ShareUse use{.held = {head.held}, .committed = {head.held / 2}};
  const Bytes kept = kept_lease(others, budget, own, use);
  require(kept >= floor && kept <= lease);
  require(kept >= std::min(lease, use.committed));
  Bytes left = budget;
  for (const ShareSlot& slot : others) left = minus_or_zero(left, slot.lease);
  require(kept <= std::max({floor, use.committed, left}));
}

void check_file(const ShareLayout& layout, const Head& head) {
  const ShareOwner owner{head.owner, head.is_group != 0};
  const std::uint64_t read = head.read % (sizeof layout + 1);
  const std::string fault = fault_of(layout.header, read, head.file_size, owner);
  require(fault.find('\n') == std::string::npos);
  if (!fault.empty()) return;
  const Bytes budget{layout.header.budget};
  require(layout.header.magic == kShareMagic && head.file_size == sizeof layout);
  require(budget.count != 0 && budget <= kMostShared);
  std::vector<ShareSlot> others;
  for (const ShareRecord& record : layout.slots) {
    const auto slot = slot_of(record, budget);
    if (!slot) continue;
    require(slot->floor.count != 0);
    require(std::max({slot->floor, slot->lease, slot->wanted}) <= budget);
    others.push_back(*slot);
  }
  check_policy(others, budget, head);
}

}  // namespace

void fuzz(std::string_view bytes) {
  const ShareId id = ShareId::of_file(bytes);
  require(id.name.empty() || (is_share_name(id.name) && bytes.ends_with(id.name)));
  Head head;
  if (!take_head(bytes, head)) return;
  ShareLayout layout;
  fill_with(bytes, layout);
  // A check is easy to make and hard to guess.
  for (std::size_t i = 0; i < kShareSlots; ++i) {
    ShareRecord& record = layout.slots.at(i);
    if (((head.seals >> i) & 1U) != 0) record.check = check_of(record);
  }
  check_file(layout, head);
  layout.header.check = check_of(layout.header);
  check_file(layout, head);
  // And under a header as it should be.
  layout.header =
      header_of({head.owner, head.is_group != 0}, {1 + head.needed % kMostShared.count});
  head.read = head.file_size = sizeof layout;
  check_file(layout, head);
}

}  // namespace weir::testing
