#include "tools/preload/context/loads.hpp"

#include <algorithm>
#include <exception>

namespace weir::preload {

Loads::Group* Loads::find(const Account& account) noexcept {
  const auto found = std::ranges::find(groups_, &account, &Group::account);
  return found != groups_.end() ? &*found : nullptr;
}

bool Loads::begin(const Account& account) noexcept {
  const Lock lock(mutex_);
  Group* group = find(account);
  if (group == nullptr) {
    try {
      group = &groups_.emplace_back();
    } catch (const std::exception&) {
      return false;  // the load is not counted
    }
    group->account = &account;
  }
  ++group->under_way;
  return !group->before;
}

void Loads::note_before(const Account& account, std::optional<Bytes> free) noexcept {
  const Lock lock(mutex_);
  Group* const group = find(account);
  if (group == nullptr || !free) return;
  // Two threads may read, and the first load may begin in between: keep the reading with more free
  // memory.
  if (!group->before || group->before->free < *free) group->before = {*free, account.used()};
}

bool Loads::end(const Account& account, std::optional<Loaded> loaded) noexcept {
  const Lock lock(mutex_);
  Group* const group = find(account);
  if (group == nullptr) return false;
  --group->under_way;
  try {
    if (loaded) group->ended.push_back(*loaded);
  } catch (const std::exception&) {
    // The other loads get its part, too.
  }
  return group->under_way == 0 || group->ended.size() >= kMostEnded;
}

Bytes Loads::take(Group& group, Account& account, std::optional<Bytes> free,
                  std::size_t loads) noexcept {
  Bytes taken;
  if (group.before && free && loads != 0) {
    taken = std::min(taken_by_loads(*group.before, {*free, account.used()}, group.counted),
                     kMostOfAModule * loads);
    account.charge(taken);
    group.counted += taken;
  }
  if (group.under_way == 0) {
    group.before.reset();
    group.counted = {};
  }
  return taken;
}

void Loads::forget(std::uint64_t handle) noexcept {
  const Lock lock(mutex_);
  for (Group& group : groups_) {
    std::erase_if(group.ended, [&](const Loaded& each) { return each.handle == handle; });
  }
}

}  // namespace weir::preload
