// What batches take and give back, and how an allocation that nothing submitted can serve waits
// for the batches that are open beside its own.

#include <algorithm>

#include "scheduler/admission/admission.hpp"

namespace weir {

/// Lives on the stack of who waits, and is in the list only while that one waits.
struct Admission::Blocked : BlockedAllocation {
  Bytes block;
  bool fails = false;                                ///< it is the one that has to
  std::condition_variable_any* asleep_on = nullptr;  ///< its thread's

  void tell(bool to_fail) noexcept {
    has_news = true;
    fails = to_fail;
    if (asleep_on != nullptr) asleep_on->notify_one();
  }
};

void Admission::note_allocated(TicketRef ref, Bytes bytes) {
  const Lock lock(mutex_);
  ledger_.note_allocated(ref, bytes);
}

void Admission::note_freed(TicketRef ref, Bytes bytes, bool awaiting) noexcept {
  const Lock lock(mutex_);
  ledger_.note_freed(ref, bytes, awaiting);
  given_back_.fetch_add(1);
  wake_who_waits_for_open(awaiting);
  wake_blocked(true);
}

// Without the lock where nobody listens. Nobody is missed: who is about to sleep first says that it
// listens and then looks at the count, and here it is the other way round.
void Admission::note_given_back() noexcept {
  given_back_.fetch_add(1);
  if (listeners_.load() == 0) return;
  const Lock lock(mutex_);
  wake_who_waits_for_open(false);
  wake_blocked(false);
}

void Admission::note_listeners() noexcept {
  listeners_.store(blocked_.size() + (waits_for_open_ != nullptr ? 1 : 0));
}

/// Those that may be served now. Where `whole` blocks were freed, only those that the budget has
/// room for beside what is handed out: a condition that every kind of pool has.
void Admission::wake_blocked(bool whole) noexcept {
  if (blocked_.empty()) return;
  const Statistics books = memory_.statistics();
  for (BlockedAllocation* allocation : blocked_) {
    auto& blocked = static_cast<Blocked&>(*allocation);
    if (blocked.has_news) continue;
    if (whole && blocked.block > minus_or_zero(books.budget, books.allocated.current)) continue;
    blocked.tell(false);
  }
}

void Admission::fail_youngest() noexcept {
  BlockedAllocation* youngest = who_fails(ledger_.open_count(), blocked_);
  if (youngest != nullptr) static_cast<Blocked*>(youngest)->tell(true);
}

// Ends: at the deadline. Before that as soon as nobody is left who may free something: every
// batch that closes and every allocation that comes or goes asks for who fails.
bool Admission::await_memory(const MemoryWait& wait) {
  if (wait.block.count == 0 || wait.block > memory_.budget()) return false;
  Blocked own;
  own.block = wait.block;
  Lock lock(mutex_);
  if (ledger_.is_open(wait.batch)) own.batch = wait.batch.serial;
  blocked_.push_back(&own);
  note_listeners();
  if (given_back_.load() != wait.looked) own.has_news = true;
  fail_youngest();
  const auto start = std::chrono::steady_clock::now();
  const bool slept = !own.has_news;
  own.asleep_on = &own_sleep();
  const bool woken = sleep_for_room(lock, own.has_news, wait.stop, wait.deadline, wait.books);
  std::erase(blocked_, &own);
  note_listeners();
  if (slept) {
    ++counts_.grace.count;
    counts_.grace.total += std::chrono::steady_clock::now() - start;
  }
  const bool look_again = woken && !own.fails;
  // Of the others, where this was work outside any batch. Else its batch runs on, and may free.
  if (!look_again) fail_youngest();
  return look_again;
}

}  // namespace weir
