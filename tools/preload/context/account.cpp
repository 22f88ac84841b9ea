#include "tools/preload/context/account.hpp"

#include "allocator/base/calling_thread.hpp"

namespace weir::preload {

// Whoever lowers the budget reads afterwards what is used, and may promise the rest to another
// process. So this reads the budget again after it has taken: of the two one sees the other,
// since these four accesses are in one order (seq_cst). Ends: each round more the budget was
// lowered meanwhile.
std::size_t Account::take_up_to(std::size_t count, Bytes size) noexcept {
  for (;;) {
    std::uint64_t used = used_.load();
    std::uint64_t taken = 0;
    do {
      taken = std::min<std::uint64_t>(count, minus_or_zero(budget(), {used}).count / size.count);
    } while (!used_.compare_exchange_weak(used, used + taken * size.count));
    if (taken == 0 || used + taken * size.count <= budget().count) return taken;
    withdraw(size * taken);
  }
}

std::size_t Account::claim(std::size_t count, Bytes size) noexcept {
  if (count == 0) return 0;
  const Lock lock(mutex_);
  const std::size_t fit = size.count == 0 ? count : take_up_to(count, size);
  claimed_ += size * fit;
  claims_ += fit != 0 ? 1 : 0;
  return fit;
}

void Account::end_claim(Bytes claimed, Bytes withdrawn) noexcept {
  {
    const Lock lock(mutex_);
    withdraw(withdrawn);
    claimed_ -= claimed;
    --claims_;
    ++returned_to_budget_;  // also if nothing was withdrawn: it may have been counted twice
  }
  something_returned_.notify_all();
}

void Account::begin_release() noexcept {
  const Lock lock(mutex_);
  ++releases_;
}

void Account::end_release() noexcept {
  {
    const Lock lock(mutex_);
    --releases_;
    ++returned_to_budget_;
    ++returned_to_device_;
  }
  something_returned_.notify_all();
}

bool Account::await_returned(Refusal refusal, Returned before,
                             std::chrono::steady_clock::time_point until) noexcept {
  const NoCancel no_cancel;
  Lock lock(mutex_);
  const auto has_returned = [&]() WEIR_REQUIRES(mutex_) {
    return refusal == Refusal::kBudget ? returned_to_budget_ != before.to_budget
                                       : returned_to_device_ != before.to_device;
  };
  const auto none_is_open = [&]() WEIR_REQUIRES(mutex_) {
    return releases_ == 0 && (refusal != Refusal::kBudget || claims_ == 0);
  };
  something_returned_.wait_until(
      lock, until, [&]() WEIR_REQUIRES(mutex_) { return has_returned() || none_is_open(); });
  return has_returned();
}

bool Account::is_hopeless(Bytes bytes, Bytes kept) const noexcept {
  const Lock lock(mutex_);
  return bytes > minus_or_zero(budget(), minus_or_zero(used(), kept + claimed_));
}

void Account::add_passed(Kind kind, Bytes bytes) {
  const Lock lock(mutex_);
  Passed& passed = kinds_.at(static_cast<std::size_t>(kind));
  passed.level.add(bytes);
  passed.sum += bytes;
  ++passed.calls;
}

void Account::remove_passed(Kind kind, Bytes bytes) noexcept {
  if (row_of(kind).counts) withdraw(bytes);
  const Lock lock(mutex_);
  kinds_[static_cast<std::size_t>(kind)].level.remove(bytes);
}

Bytes Account::set_passed(Kind kind, Bytes bytes) noexcept {
  const Lock lock(mutex_);
  Passed& passed = kinds_[static_cast<std::size_t>(kind)];
  const Bytes less = minus_or_zero(passed.level.current, bytes);
  const Bytes more = minus_or_zero(bytes, passed.level.current);
  withdraw(less);
  charge(more);
  passed.level.remove(less);
  passed.level.add(more);
  passed.sum += more;
  passed.calls += more.count != 0 ? 1 : 0;
  return less;
}

Bytes Account::passed() const {
  const Lock lock(mutex_);
  Bytes sum;
  for (const KindRow& row : kKindRows) {
    if (row.counts) sum += kinds_.at(static_cast<std::size_t>(row.kind)).level.current;
  }
  return sum;
}

std::vector<Passed> Account::passed_kinds() const {
  const Lock lock(mutex_);
  std::vector<Passed> kinds;
  for (const KindRow& row : kKindRows) {
    const Passed& its = kinds_.at(static_cast<std::size_t>(row.kind));
    if (its.calls == 0) continue;
    Passed& kind = kinds.emplace_back(its);
    kind.kind = row.name;
    kind.counted = row.counts;
  }
  return kinds;
}

}  // namespace weir::preload
