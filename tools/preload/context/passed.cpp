#include "tools/preload/context/passed.hpp"

#include <exception>

namespace weir::preload {
namespace {

/// Handles of different types may have the same number; all kinds freed by address share one type.
constexpr std::uint64_t key(Kind kind, std::uint64_t handle) noexcept {
  return handle ^ (row_of(kind).by_handle ? (static_cast<std::uint64_t>(kind) + 1) << 56U : 0);
}

}  // namespace

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

void PassedTable::remove(const Entry& entry) noexcept {
  if (entry.pool != nullptr) {
    if (entry.own != nullptr) entry.own->note_freed(entry.pool, entry.bytes);
  } else {
    entry.account->remove_passed(entry.kind, entry.bytes);
  }
}

void PassedTable::settle(std::uint64_t handle, const std::optional<Entry>& entry,
                         bool freed) noexcept {
  if (!entry) return;
  if (freed) return remove(*entry);
  try {
    add(handle, *entry);
  } catch (const std::exception&) {
    // It stays charged permanently: counting too much is safer than too little.
  }
}

Bytes PassedTable::orphan(CUmemoryPool pool) noexcept {
  Bytes alive;
  Entry* first = nullptr;
  const Lock lock(mutex_);
  for (auto& [handle, entry] : entries_) {
    if (entry.pool != pool) continue;
    entry.pool = nullptr;
    entry.kind = Kind::kDirect;
    alive += entry.bytes;
    if (first == nullptr) first = &entry;
    entry.account->charge(entry.bytes);
    entry.account->add_passed(entry.kind, entry.bytes);
  }
  // The driver keeps whole pieces.
  const Bytes more = minus_or_zero(OwnMemory::in_pieces(alive), alive);
  if (first == nullptr || more.count == 0) return alive;
  first->bytes += more;
  first->account->charge(more);
  first->account->add_passed(first->kind, more);
  return alive + more;
}

void PassedTable::forget(CUcontext context) noexcept {
  const Lock lock(mutex_);
  std::erase_if(entries_, [&](const auto& each) {
    if (each.second.context != context) return false;
    remove(each.second);
    return true;
  });
}

}  // namespace weir::preload
