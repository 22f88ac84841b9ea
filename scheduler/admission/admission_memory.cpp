// Charges batches for their memory, and lets an allocation that no submitted work can serve wait
// for other open batches.

#include <algorithm>

#include "scheduler/admission/admission.hpp"
#include "scheduler/admission/waking.hpp"

namespace weir {

/// Lives on the waiter's stack, and is in the list only while the waiter waits.
struct Admission::Blocked : BlockedAllocation {
  Bytes block;
  bool fails = false;                    ///< this one has to fail
  std::shared_ptr<Condition> asleep_on;  ///< its thread's; null: it is awake

  void tell(Waking& lock, bool to_fail) noexcept {
    has_news = true;
    fails = to_fail;
    lock.wake(asleep_on);
  }
};

void Admission::note_allocated(TicketRef ref, Bytes bytes, const Stalls& waits) {
  Waking lock(mutex_);
  rules_.ledger().note_allocated(ref, bytes);
  count_waits(ref, waits);
  // A waiter that looked after the pool gave the bytes and before this saw them twice: held, and
  // promised as well.
  wake_who_waits_for_open(lock, false);
}

void Admission::note_waited(TicketRef ref, const Stalls& waits) {
  const Lock lock(mutex_);
  count_waits(ref, waits);
}

void Admission::count_waits(TicketRef ref, const Stalls& waits) {
  if (waits.count == 0) return;
  counts_.budget += waits;
  counts_.in_allocations += waits;
  if (rules_.ledger().is_open(ref) && !std::exchange(ref.ticket->stalled, true)) ++counts_.stalled;
  rules_.note_waited_for_memory(ref);
}

void Admission::note_freed(TicketRef ref, Bytes bytes, bool awaiting) noexcept {
  Waking lock(mutex_);
  rules_.ledger().note_freed(ref, bytes, awaiting);
  given_back_.fetch_add(1);
  wake_who_waits_for_open(lock, awaiting);
  wake_blocked(lock, true);
}

// Takes no lock if nobody listens. No sleeper is missed: a sleeper registers and then reads the
// count; this function counts and then reads the listeners.
void Admission::note_given_back() noexcept {
  given_back_.fetch_add(1);
  if (listeners_.load() == 0) return;
  Waking lock(mutex_);
  wake_who_waits_for_open(lock, false);
  wake_blocked(lock, false);
}

void Admission::note_listeners() noexcept {
  listeners_.store(blocked_.size() + (waits_for_open_ != nullptr ? 1 : 0));
}

/// Wakes those that may be served now. If `whole` blocks were freed, wakes only those that fit in
/// the budget beside what is allocated, a condition that holds for every kind of pool.
void Admission::wake_blocked(Waking& lock, bool whole) noexcept {
  if (blocked_.empty()) return;
  const Statistics statistics = memory_.statistics();
  for (BlockedAllocation* allocation : blocked_) {
    auto& blocked = static_cast<Blocked&>(*allocation);
    if (blocked.has_news) continue;
    if (whole && blocked.block > minus_or_zero(statistics.budget, statistics.allocated.current))
      continue;
    blocked.tell(lock, false);
  }
}

void Admission::fail_youngest(Waking& lock) noexcept {
  BlockedAllocation* youngest = who_fails(rules_.ledger().open_count(), blocked_);
  if (youngest != nullptr) static_cast<Blocked*>(youngest)->tell(lock, true);
}

// Ends: at the deadline, or as soon as no batch is left that may free something. Every batch that
// closes and every allocation that starts or stops waiting calls fail_youngest.
bool Admission::await_memory(const MemoryWait& wait) {
  if (wait.block.count == 0 || wait.block > memory_.budget()) return false;
  Blocked own;
  own.block = wait.block;
  Waking lock(mutex_);
  if (rules_.ledger().is_open(wait.batch)) own.batch = wait.batch.serial;
  blocked_.push_back(&own);
  note_listeners();
  if (given_back_.load() != wait.looked) own.has_news = true;
  fail_youngest(lock);
  lock.wake_now();  // before the sleep
  own.asleep_on = own_sleep();
  const bool woken = sleep_for_room(lock, own.has_news, wait.stop, wait.deadline, wait.pressure);
  std::erase(blocked_, &own);
  note_listeners();
  const bool look_again = woken && !own.fails;
  // If this was work outside any batch, another must fail now. Otherwise its batch runs on, and may
  // free.
  if (!look_again) fail_youngest(lock);
  return look_again;
}

void Admission::limit_to_use(BudgetLimit& limit) noexcept {
  const Lock lock(mutex_);
  const Pressure now = memory_.pressure();
  const Bytes unspent = rules_.ledger().unspent();
  const bool idle = rules_.ledger().open_count() == 0 && rules_.ledger().submitted() == 0 &&
                    rules_.first() == nullptr && blocked_.empty();
  limit.set_for({.held = now.held + unspent,
                 .committed = minus_or_zero(now.held, now.awaiting) + unspent,
                 .idle = idle});
}

}  // namespace weir
