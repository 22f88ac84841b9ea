#include "tools/preload/context/device.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "allocator/base/log.hpp"
#include "tools/preload/context/arena.hpp"
#include "tools/preload/context/device_share.hpp"

namespace weir::preload {

Bytes budget_of(const Settings& settings, Bytes total) {
  const auto& asked = settings.pool.budget;
  // With several devices the smallest may be one that the program does not use.
  if (asked.value.percent <= 0 && asked.value.bytes > total) return total;
  return resolve_budget(asked.value, total, "budget (" + asked.source + ")");
}

Device::Device(const Driver& driver, const Settings& settings, ContextGate& gate, int number,
               Bytes total)
    : settings_(settings),
      gate_(gate),
      account_(number, total, budget_of(settings, total)),
      own_(driver, account_) {}

Device::~Device() = default;

void Device::attach(std::function<void()> meanwhile) {
  const ShareSettings& setting = settings_.share;
  const Bytes budget = account_.budget();
  share_ = std::make_unique<DeviceShare>(
      *this, ShareOptions{.id = setting.id(static_cast<unsigned>(number()) + 1),
                          .budget = budget,
                          .floor = setting.floor_in(budget),
                          .meanwhile = std::move(meanwhile)});
  account_.set_budget(share_->lease());
  account_.draw_from(share_.get());
}

void Device::add(Arena& arena) {
  const Lock changing(budget_mutex_);
  {
    const Lock lock(mutex_);
    arenas_.push_back(&arena);
  }
  used_.store(true);
  arena.follow_budget();
}

void Device::remove(Arena& arena) {
  const Lock lock(mutex_);
  std::erase(arenas_, &arena);
}

std::vector<Arena*> Device::arenas() const {
  const Lock lock(mutex_);
  return arenas_;
}

bool Device::is_hopeless(Bytes bytes, bool drains) const noexcept {
  try {
    const Bytes pending = drains ? own_.pending() : Bytes{};
    return account_.is_hopeless(bytes, kept() + own_.unused() + pending);
  } catch (const std::exception&) {
    return false;  // nobody is told that it is hopeless
  }
}

Bytes Device::kept(const Pool* but) const {
  Bytes kept;
  for (Arena* const arena : arenas()) kept += arena->pool().kept(but) + arena->upstream().held();
  return kept;
}

Bytes Device::spare(const Pool* but) {
  Bytes spare;
  for (Arena* const arena : arenas()) {
    if (arena->fences().capturing()) continue;
    spare += arena->pool().spare(but) + arena->upstream().held();
  }
  return spare;
}

Bytes Device::trim(Bytes need, bool may_release, const Pool* but) {
  Bytes released;
  for (Arena* const arena : arenas()) {
    if (released >= need) break;
    if (arena->fences().capturing()) continue;
    const Bytes held = arena->upstream().held();
    arena->upstream().release_held(may_release);
    released += minus_or_zero(held, arena->upstream().held());
    released += arena->pool().release(minus_or_zero(need, released), may_release, but);
  }
  return released;
}

bool Device::settle(const WaitLimit& limit) const {
  return std::ranges::all_of(arenas(), [&](Arena* arena) {
    return arena->fences().capturing() || arena->upstream().settle(limit);
  });
}

std::optional<Release> Device::oldest_release() const {
  std::optional<Release> oldest;
  Fences::Clock::time_point recorded;
  for (Arena* const arena : arenas()) {
    if (arena->fences().capturing()) continue;
    const auto point = arena->pool().oldest(&Pool::oldest_outstanding);
    if (!point) continue;
    const auto its = arena->fences().recorded(*point);
    if (oldest && its >= recorded) continue;
    oldest = {.owner = arena, .point = *point};
    recorded = its;
  }
  return oldest;
}

timeline::BudgetAnswer Device::answer(timeline::BudgetCode code) const noexcept {
  return {.code = code,
          .before = account_.budget(),
          .after = account_.budget(),
          .used = account_.used(),
          .total = account_.total()};
}

void Device::follow_budget() {
  for (Arena* const arena : arenas()) arena->follow_budget();
}

template <typename Change>
timeline::BudgetAnswer Device::change_budget(std::string_view by, const Change& change) noexcept {
  // The share's processes have named its budget.
  if (account_.source() != nullptr) return answer(timeline::BudgetCode::kFixed);
  timeline::BudgetAnswer result = answer(timeline::BudgetCode::kOutOfRange);
  attempt(LogLevel::kError, "a budget was not set as a whole", [&] {
    const Lock lock(budget_mutex_);
    result.before = account_.budget();
    change();
    const Bytes budget = account_.budget();
    result.code = timeline::BudgetCode::kTaken;
    follow_budget();
    if (budget > result.before) account_.note_raise();
    trims_.store(true);
    log(LogLevel::kInfo, "the budget of GPU " + std::to_string(number()) + " is " +
                             format_bytes(budget) + " now and was " + format_bytes(result.before) +
                             " (" + std::string(by) + ")");
  });
  trim_above(settings_.max_wait.value);
  result.after = account_.budget();
  result.used = account_.used();
  return result;
}

timeline::BudgetAnswer Device::set_budget(Bytes budget, std::string_view by) noexcept {
  if (!timeline::is_in_range(budget, account_.total())) {
    return answer(timeline::BudgetCode::kOutOfRange);
  }
  return change_budget(by, [&] { account_.set_budget(budget); });
}

timeline::BudgetAnswer Device::set_fraction(double fraction, std::string_view by) noexcept {
  if (!(fraction >= 0 && fraction <= 1)) {  // not a number, too
    return answer(timeline::BudgetCode::kOutOfRange);
  }
  const auto total = static_cast<double>(account_.total().count);
  const Bytes share = std::min(Bytes{static_cast<std::uint64_t>(total * fraction)},
                               account_.total());  // a double may be rounded up
  return change_budget(by, [&] { account_.set_limit(std::max(share, timeline::kLeastBudget)); });
}

BudgetView Device::view(Bytes free, Bytes total) const {
  // Memory that awaits the device counts as free: a driver whose cuMemFree waits would have it back
  // by now. What the program's own pools keep does not, as without Weir.
  Bytes freed;
  for (const Arena* const arena : arenas()) {
    const Statistics statistics = arena->pool().statistics();
    freed += statistics.cached.current;
    freed += statistics.awaiting.current;
  }
  const Bytes held = minus_or_zero(account_.used(), freed);
  return {.total = std::min(total, account_.budget()),
          .free = std::min({free + freed, minus_or_zero(account_.budget(), held), total}),
          .held = held};
}

void Device::keep_budget(std::chrono::nanoseconds most) noexcept {
  if (trims_.load(std::memory_order_relaxed)) trim_above(most);
  keep_share(most);
}

void Device::keep_share(std::chrono::nanoseconds most) noexcept {
  if (share_ == nullptr || InCallback::now()) return;  // a callback may not call the driver
  share_->return_wanted(most);
}

void Device::trim_to_budget(std::chrono::nanoseconds most) noexcept {
  trims_.store(true);
  trim_above(most);
}

void Device::trim_above(std::chrono::nanoseconds most) noexcept {
  if (InCallback::now()) return;  // a callback may not call the driver
  const auto above = [&] { return minus_or_zero(account_.used(), account_.budget()); };
  if (above().count != 0) {
    attempt(LogLevel::kDebug, "nothing was released", [&] {
      const auto until = time_after_now(most);
      for (const bool settled : {false, true}) {
        if (settled && (most.count() == 0 || spare().count == 0 || !settle({.until = until})))
          break;
        const ContextGate::Turn turn(gate_, until);
        if (!turn.granted()) return;
        (void)own_.trim(above());
        (void)trim(above(), settled);
        if (above().count == 0) break;
      }
    });
  }
  if (above().count != 0) return;
  trims_.store(false);
  // A budget lowered in between is seen here, or its flag was set after this.
  if (above().count != 0) trims_.store(true);
}

}  // namespace weir::preload
