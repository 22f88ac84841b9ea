#include "tools/preload/context/account.hpp"

#include <algorithm>
#include <exception>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/time_after.hpp"

namespace weir::preload {
namespace {

/// Handles of different types may have the same number; all kinds freed by address share one type.
constexpr std::uint64_t key(Kind kind, std::uint64_t handle) noexcept {
  const bool by_handle = kind == Kind::kArrays || kind == Kind::kMappable || kind == Kind::kModules;
  return handle ^ (by_handle ? (static_cast<std::uint64_t>(kind) + 1) << 56U : 0);
}

}  // namespace

// Whoever lowers the budget reads afterwards what is used, and may promise the rest to another
// process. So a take reads the budget again after it has taken: of the two one sees the other,
// since these four accesses are in one order (seq_cst).
bool Account::take(Bytes bytes) noexcept {
  std::uint64_t used = used_.load();
  do {
    const std::uint64_t budget = this->budget().count;
    if (used > budget || bytes.count > budget - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes.count));
  if (used + bytes.count <= budget().count) return true;
  give_back(bytes);
  return false;
}

// Ends: each round more the budget was lowered meanwhile.
std::size_t Account::take_up_to(std::size_t count, Bytes size) noexcept {
  for (;;) {
    std::uint64_t used = used_.load();
    std::uint64_t taken = 0;
    do {
      taken = std::min<std::uint64_t>(count, minus_or_zero(budget(), {used}).count / size.count);
    } while (!used_.compare_exchange_weak(used, used + taken * size.count));
    if (taken == 0 || used + taken * size.count <= budget().count) return taken;
    give_back(size * taken);
  }
}

std::size_t Account::claim(std::size_t count, Bytes size) noexcept {
  if (count == 0) return 0;
  const Bytes all = size * count;
  // Every round ends, since patience bounds its waits; a round without patience is the last. A
  // waiting claim has taken nothing: two claims would otherwise wait for each other.
  for (bool last = false; !last;) {
    std::uint64_t ended = 0;
    {
      const Lock lock(mutex_);
      if (take(all)) {
        claimed_ += all;
        ++moves_;
        return count;
      }
      ended = moves_ended_;
    }
    last = neighbours_ == nullptr || neighbours_->patience().count() == 0;
    if (!await_room(all, ended)) break;
  }
  const Lock lock(mutex_);
  const std::size_t fit = take_up_to(count, size);
  claimed_ += size * fit;
  moves_ += fit != 0 ? 1 : 0;
  return fit;
}

void Account::end_claim(Bytes claimed, Bytes given_back) noexcept {
  {
    const Lock lock(mutex_);
    give_back(given_back);
    claimed_ -= claimed;
    --moves_;
    ++moves_ended_;
  }
  move_ended_.notify_all();
}

void Account::begin_return() noexcept {
  const Lock lock(mutex_);
  ++moves_;
}

void Account::end_return() noexcept {
  {
    const Lock lock(mutex_);
    --moves_;
    ++moves_ended_;
  }
  move_ended_.notify_all();
}

bool Account::await_room(Bytes bytes, std::uint64_t ended) noexcept {
  if (neighbours_ == nullptr) return false;
  if (is_hopeless(bytes)) return moves_ended() != ended;
  // Pools keep memory that would not make enough room. While this thread waited to ask them,
  // another may have made them give everything back: then they have nothing more, but there is
  // room.
  const Bytes lacks = missing(bytes);
  if (lacks.count == 0 || neighbours_->reclaim(*this, lacks, true).count != 0) return true;
  return missing(bytes).count == 0 || await_move(ended);
}

bool Account::await_move(std::uint64_t ended) noexcept {
  const std::chrono::nanoseconds most = neighbours_->patience();
  const NoCancel no_cancel;
  Lock lock(mutex_);
  move_ended_.wait_until(lock, time_after_now(most), [&]() WEIR_REQUIRES(mutex_) {
    return moves_ == 0 || moves_ended_ != ended;
  });
  return moves_ended_ != ended;
}

bool Account::reclaim(Bytes bytes, std::uint64_t ended) noexcept {
  if (neighbours_ == nullptr || is_hopeless(bytes)) return false;
  const Bytes lacks = missing(bytes);
  // If the budget has room, the device is full, perhaps of other processes, and nobody says how
  // much is missing. Otherwise pools keep memory that would not make enough room.
  const bool short_of_budget = lacks.count != 0;
  const Bytes given = neighbours_->reclaim(*this, short_of_budget ? lacks : bytes, short_of_budget);
  return given.count != 0 || await_move(ended);
}

bool Account::is_hopeless(Bytes bytes) const noexcept {
  const Bytes free = neighbours_ != nullptr ? neighbours_->not_in_use(*this) : Bytes{};
  const Lock lock(mutex_);
  return bytes > minus_or_zero(budget(), minus_or_zero(used(), free + claimed_));
}

void Account::add_passed(Kind kind, Bytes bytes) {
  const Lock lock(mutex_);
  Passed& passed = kinds_.at(static_cast<std::size_t>(kind));
  passed.level.add(bytes);
  passed.sum += bytes;
  ++passed.calls;
}

void Account::remove_passed(Kind kind, Bytes bytes) noexcept {
  if (counts(kind)) give_back(bytes);
  const Lock lock(mutex_);
  kinds_[static_cast<std::size_t>(kind)].level.remove(bytes);
}

void Account::set_passed(Kind kind, Bytes bytes) {
  const Lock lock(mutex_);
  Passed& passed = kinds_.at(static_cast<std::size_t>(kind));
  const Bytes before = passed.level.current;
  if (bytes.count > before.count) {
    const Bytes more = minus_or_zero(bytes, before);
    used_.fetch_add(more.count, std::memory_order_relaxed);
    passed.level.add(more);
    passed.sum += more;
    ++passed.calls;
  } else {
    const Bytes less = minus_or_zero(before, bytes);
    used_.fetch_sub(less.count, std::memory_order_relaxed);
    passed.level.remove(less);
  }
}

Bytes Account::passed() const {
  const Lock lock(mutex_);
  Bytes sum;
  for (std::size_t i = 0; i < kKinds; ++i) {
    if (counts(static_cast<Kind>(i))) sum += kinds_.at(i).level.current;
  }
  return sum;
}

std::vector<Passed> Account::passed_kinds() const {
  const Lock lock(mutex_);
  std::vector<Passed> kinds;
  for (std::size_t i = 0; i < kKinds; ++i) {
    if (kinds_.at(i).calls == 0) continue;
    Passed& kind = kinds.emplace_back(kinds_.at(i));
    kind.kind = to_string(static_cast<Kind>(i));
    kind.counted = counts(static_cast<Kind>(i));
  }
  return kinds;
}

void PassedTable::add(std::uint64_t handle, const Entry& entry) {
  const Lock lock(mutex_);
  entries_.insert_or_assign(key(entry.kind, handle), entry);
}

std::optional<PassedTable::Entry> PassedTable::take(Kind kind, std::uint64_t handle) noexcept {
  const Lock lock(mutex_);
  const auto found = entries_.find(key(kind, handle));
  if (found == entries_.end()) return std::nullopt;
  const Entry entry = found->second;
  entries_.erase(found);
  return entry;
}

void PassedTable::settle(std::uint64_t handle, const std::optional<Entry>& entry,
                         bool freed) noexcept {
  if (!entry) return;
  if (freed) {
    entry->account->remove_passed(entry->kind, entry->bytes);
    return;
  }
  try {
    add(handle, *entry);
  } catch (const std::exception&) {
    // It stays charged permanently: counting too much is safer than too little.
  }
}

void PassedTable::forget(CUcontext context) noexcept {
  const Lock lock(mutex_);
  std::erase_if(entries_, [&](const auto& each) {
    const Entry& entry = each.second;
    if (entry.context != context) return false;
    entry.account->remove_passed(entry.kind, entry.bytes);
    return true;
  });
}

}  // namespace weir::preload
