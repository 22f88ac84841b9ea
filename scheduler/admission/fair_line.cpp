#include "scheduler/admission/fair_line.hpp"

#include <algorithm>

namespace weir {

/// Returns by how much a batch moves the end of its producer; never zero, so that it counts.
FairLine::Virtual FairLine::share_of(Bytes bytes, std::uint32_t weight) const noexcept {
  const Virtual whole = Virtual{bytes.count != 0 ? bytes.count : last_held_.count} << 32U;
  return weight == 1 ? whole : whole / weight;
}

FairLine::Virtual FairLine::tag_of_newcomer(Bytes bytes, std::uint32_t weight) const noexcept {
  Virtual tag = virtual_time_ + share_of(bytes, weight);
  for (const Place* place : waiting_) {
    if (place->is_newcomer) tag = std::max(tag, place->tag);
  }
  return tag;
}

void FairLine::join(Place& place, const Producer& producer, Bytes bytes, std::uint32_t weight) {
  accounts_.reserve(accounts_.size() + waiting_.size() + 1);  // one for each served place
  waiting_.reserve(waiting_.size() + 1);
  if (!any_held_) last_held_ = std::max(last_held_, bytes);
  Account* account = find(producer.number);
  place = {.producer = producer.number,
           .weight = weight,
           .bytes = bytes,
           .tag = account != nullptr ? std::max(virtual_time_, account->end)
                                     : tag_of_newcomer(bytes, weight),
           .arrival = ++arrivals_,
           .is_newcomer = account == nullptr,
           .ended = producer.ended};
  waiting_.push_back(&place);
  if (account == nullptr) return;
  account->returned = account->waiting = true;
  if (account->late != 0) --account->late;
}

FairLine::Account* FairLine::find(std::uint64_t producer) noexcept {
  const auto account = std::ranges::find(accounts_, producer, &Account::producer);
  return account != accounts_.end() ? &*account : nullptr;
}

void FairLine::note_late(std::uint64_t producer) noexcept {
  Account* account = find(producer);
  if (account == nullptr) return;
  account->fine = std::clamp(2 * account->fine, std::uint32_t{2}, kMostLate);
  account->late = account->fine;
}

std::uint64_t FairLine::weights() const noexcept {
  std::uint64_t sum = 0;
  for (const Account& account : accounts_) {
    const bool is_gone = account.is_away() && account.has_ended();
    sum += account.waiting || is_gone ? 0 : account.weight;
  }
  for (const Place* place : waiting_) sum += place->weight;
  return sum;
}

void FairLine::serve(Place& place) noexcept {
  std::erase(waiting_, &place);
  virtual_time_ = std::max(virtual_time_, place.tag);
  Account* account = find(place.producer);
  if (account == nullptr) {
    account = &accounts_.emplace_back(Account{.producer = place.producer, .ended = place.ended});
  }
  account->weight = place.weight;
  account->last = share_of(place.bytes, place.weight);
  account->end = place.tag + account->last;
  ++account->open;
  account->waiting = false;
  // For the order an account that ended before now equals no account. Threads come and go, so drop
  // it, but only a batch later: a producer that is back by then is away for a short time. One that
  // was late is remembered for longer.
  const Virtual moved = account->last;
  std::erase_if(accounts_, [this, moved](const Account& a) {
    if (!a.is_away()) return false;
    if (a.has_ended()) return true;
    if (a.end > virtual_time_) return false;
    const Virtual ago = virtual_time_ - a.end;
    return a.fine == 0 ? ago >= a.last : ago / kMostLate >= std::max(a.last, moved);
  });
}

void FairLine::correct(std::uint64_t producer, Bytes expected, Bytes held) noexcept {
  Account* account = find(producer);
  if (account == nullptr) return;
  --account->open;
  const Virtual before = share_of(expected, account->weight);
  if (held.count != 0) {
    last_held_ = held;
    any_held_ = true;
  }
  account->last = share_of(held, account->weight);
  account->end += account->last;
  account->end -= std::min(account->end, before);
}

void FairLine::leave(Place& place) noexcept {
  std::erase(waiting_, &place);
  if (Account* account = find(place.producer)) account->waiting = false;
}

std::uint64_t this_thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t kNumber = ++last;
  return kNumber;
}

Producer this_producer() {
  static constinit thread_local bool is_over = false;
  struct Own {
    std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
    Own() = default;
    ~Own() {
      ended->store(true);
      is_over = true;
    }
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
  };
  // Destructors of other thread_locals and of statics may begin batches after that of `kOwn`.
  if (is_over) return {this_thread_number(), std::make_shared<std::atomic<bool>>(true)};
  thread_local const Own kOwn;
  return {this_thread_number(), kOwn.ended};
}

}  // namespace weir
