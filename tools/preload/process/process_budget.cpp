// Changes a device's budget while the program runs, and shows its account.

#include <algorithm>
#include <atomic>
#include <exception>

#include "allocator/base/log.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {

namespace {

timeline::BudgetAnswer refused(const Account& account, timeline::BudgetCode code) noexcept {
  return {.code = code,
          .before = account.budget(),
          .after = account.budget(),
          .used = account.used(),
          .total = account.total()};
}

}  // namespace

template <typename Change>
timeline::BudgetAnswer Process::change_budget(Account& account, std::string_view by,
                                              const Change& change) noexcept {
  // The share's processes have named its budget.
  if (account.source() != nullptr) return refused(account, timeline::BudgetCode::kFixed);
  timeline::BudgetAnswer answer = refused(account, timeline::BudgetCode::kOutOfRange);
  attempt(LogLevel::kError, "a budget was not set as a whole", [&] {
    const Lock lock(budgets_mutex_);
    const std::vector<Arena*> its = arenas();
    answer.before = account.budget();
    change();
    const Bytes budget = account.budget();
    answer.code = timeline::BudgetCode::kTaken;
    for (Arena* const arena : its) {
      if (&arena->account() == &account) arena->follow_budget();
    }
    if (budget > answer.before) account.note_raise();
    account.give_back_what_comes_free(true);
    log(LogLevel::kInfo, "the budget of GPU " + std::to_string(account.device()) + " is " +
                             format_bytes(budget) + " now and was " + format_bytes(answer.before) +
                             " (" + std::string(by) + ")");
  });
  give_back(account, true);
  answer.after = account.budget();
  answer.used = account.used();
  return answer;
}

timeline::BudgetAnswer Process::set_budget(Account& account, Bytes budget,
                                           std::string_view by) noexcept {
  if (!timeline::is_in_range(budget, account.total())) {
    return refused(account, timeline::BudgetCode::kOutOfRange);
  }
  return change_budget(account, by, [&] { account.set_budget(budget); });
}

timeline::BudgetAnswer Process::set_fraction(Account& account, double fraction,
                                             std::string_view by) noexcept {
  if (!(fraction >= 0 && fraction <= 1)) {  // not a number, too
    return refused(account, timeline::BudgetCode::kOutOfRange);
  }
  const auto total = static_cast<double>(account.total().count);
  const Bytes share = std::min(Bytes{static_cast<std::uint64_t>(total * fraction)},
                               account.total());  // a double may be rounded up
  return change_budget(account, by,
                       [&] { account.set_limit(std::max(share, timeline::kLeastBudget)); });
}

Bytes Process::budget_of(Bytes total) const {
  const auto& asked = settings_.pool.budget;
  // With several devices the smallest may be one that the program does not use.
  if (asked.value.percent <= 0 && asked.value.bytes > total) return total;
  return resolve_budget(asked.value, total, "budget (" + asked.source + ")");
}

// The CUDA runtime asks for the memory of every device that it sees. Each rank's program would take
// a floor on every device of the machine.
Account* Process::account_without_attaching(int device) noexcept {
  if (!settings_.share.is_on()) return account(device);
  const Lock lock(mutex_);
  for (const auto& known : accounts_) {
    if (known->device() == device) return known.get();
  }
  return nullptr;
}

Bytes Process::visible_budget(int device, Bytes total) noexcept {
  if (const Account* const known = account_without_attaching(device)) {
    return std::min(total, known->budget());
  }
  if (!settings_.share.is_on()) return total;
  try {
    return std::min(total, settings_.share.floor_in(budget_of(total)));
  } catch (const std::exception&) {
    return total;  // the settings do not fit this device: attaching says so
  }
}

BudgetView Process::budget_view(const Account& account, Bytes free, Bytes total) const {
  // Memory that awaits the device counts as free: a driver whose cuMemFree waits would have it back
  // by now.
  Bytes freed;
  for (Arena* const arena : arenas()) {
    if (&arena->account() != &account) continue;
    const Statistics statistics = arena->pool().statistics();
    freed += statistics.cached.current;
    freed += statistics.awaiting.current;
  }
  const Bytes held = minus_or_zero(account.used(), freed);
  return {.total = std::min(total, account.budget()),
          .free = std::min({free + freed, minus_or_zero(account.budget(), held), total}),
          .held = held};
}

std::unique_ptr<Account> Process::make_shared_account(int device, Bytes total, Bytes budget) {
  const ShareSettings& setting = settings_.share;
  auto share = std::make_unique<AccountShare>(
      *this, ShareOptions{.id = setting.id(static_cast<unsigned>(device) + 1),
                          .budget = budget,
                          .floor = setting.floor_in(budget),
                          .meanwhile = [this] { keep_budgets(); }});
  auto account = std::make_unique<Account>(device, total, share->lease(), this);
  share->set_account(*account);
  account->draw_from(share.get());
  const Lock lock(mutex_);
  shares_.push_back(std::move(share));
  return account;
}

void Process::keep_share(const Account& account) noexcept {
  if (account.source() == nullptr) return;
  if (InCallback::now()) return;  // a callback may not call the driver
  static_cast<AccountShare*>(account.source())->give_back();
}

void Process::keep_budgets() noexcept {
  attempt(LogLevel::kDebug, "nothing was released", [&] {
    for (Account* const account : accounts_in_use()) keep_budget(*account);
  });
}

void Process::follow_budget(Arena& arena) {
  const Lock lock(budgets_mutex_);
  arena.follow_budget();
}

void Process::give_back(Account& account, bool waits) noexcept {
  if (InCallback::now()) return;  // a callback may not call the driver
  const auto above = [&account] { return minus_or_zero(account.used(), account.budget()); };
  if (above().count != 0) {
    const auto most = waits ? settings_.max_wait.value : std::chrono::nanoseconds{};
    const GiveBackGate::Turn turn(give_back_gate_, most);
    if (!turn.granted()) return;
    (void)trim_in_turn(account, above());
  }
  if (above().count != 0) return;
  account.give_back_what_comes_free(false);
  // A budget lowered in between is seen here, or its flag was set after this.
  if (above().count != 0) account.give_back_what_comes_free(true);
}

std::vector<Account*> Process::accounts_in_use() const {
  std::vector<Account*> used;
  const Lock lock(mutex_);
  for (const auto& account : accounts_) {
    const auto is_its = [&account](const auto& arena) {
      return &arena->account() == account.get();
    };
    if (std::ranges::any_of(arenas_, is_its) || std::ranges::any_of(gone_, is_its)) {
      used.push_back(account.get());
    }
  }
  return used;
}

void Process::add_figures(LiveFigures& figures) const {
  for (const Account* const account : accounts_in_use()) {
    DeviceFigures* const device = figures.of(static_cast<std::uint16_t>(account->device() + 1));
    if (device == nullptr) continue;
    const Bytes more = minus_or_zero(account->budget(), device->budget);
    device->budget += more;
    figures.budget += more;
    device->total = account->total();
    device->used = account->used();
  }
  for (Arena* const arena : arenas()) {
    const Waits paced = arena->paced();
    const Waits others = arena->waits_for_others();
    DeviceFigures* const device =
        figures.of(static_cast<std::uint16_t>(arena->account().device() + 1));
    if (device == nullptr) continue;
    device->waits += paced.count + others.count;
    device->waited += paced.total + others.total;
    device->raise_pressure(arena->pool().pressure().level, arena->pool().at_level());
  }
}

}  // namespace weir::preload
