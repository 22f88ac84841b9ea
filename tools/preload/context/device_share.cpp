#include "tools/preload/context/device_share.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <vector>

#include "allocator/base/log.hpp"
#include "tools/preload/context/arena.hpp"

namespace weir::preload {
namespace {

constexpr std::chrono::milliseconds kLookAgain{10};
/// So long after a refusal it wants no more, unless it asks again.
constexpr std::chrono::milliseconds kWish{100};

std::int64_t now() noexcept {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t count_of(std::chrono::nanoseconds time) noexcept { return time.count(); }

}  // namespace

class DeviceShare::Limit final : public BudgetLimit {
 public:
  /// `before` is what is used outside the context that is asked.
  Limit(DeviceShare& owner, const std::vector<Arena*>& arenas, BudgetUse before) noexcept
      : owner_(owner), arenas_(arenas), use_(before) {}
  void set_for(const BudgetUse& use) noexcept override {
    const ShareUse all{.held = use_.held + use.held, .committed = use_.committed + use.committed};
    try {
      const Bytes keep = owner_.share_.kept(all);
      Account& account = owner_.device_.account();
      if (keep >= account.budget()) return;
      account.set_budget(keep);
      for (Arena* const arena : arenas_) arena->follow_budget();
    } catch (const std::exception& error) {
      log(LogLevel::kDebug, std::string("nothing is returned to the share: ") + error.what());
    }
  }

 private:
  DeviceShare& owner_;
  const std::vector<Arena*>& arenas_;
  const BudgetUse use_;
};

bool DeviceShare::make_room_for(Bytes more) noexcept {
  if (more > share_.budget()) return false;  // hopeless: nobody has to return anything for it
  const Bytes wanted = device_.account().used() + more;
  return wanted > device_.account().budget() && raise(wanted, Share::Effort::kLong);
}

bool DeviceShare::raise_to(Bytes budget) noexcept { return raise(budget, Share::Effort::kBrief); }

bool DeviceShare::raise(Bytes budget, Share::Effort effort) noexcept {
  return attempt(LogLevel::kDebug, "the share was not asked", false, [&]() -> bool {
    const Lock lock(device_.budget_mutex());
    Account& account = device_.account();
    const Bytes before = account.budget();
    if (budget <= before) return false;
    const Bytes lease = share_.raise(budget, effort);
    refused_.store(lease < budget ? now() : 0, std::memory_order_relaxed);
    // Others asked for what is above this. We are about to return it, so we do not use it again.
    const Bytes most = std::min(lease, share_.kept({.held = budget, .committed = {}}));
    if (most <= before) return false;
    account.set_budget(most);
    device_.follow_budget();
    account.note_raise();
    return true;
  });
}

void DeviceShare::lower_budget() {
  const Lock lock(device_.budget_mutex());
  const std::vector<Arena*> its = device_.arenas();
  const Bytes used = device_.account().used();
  if (its.empty()) {  // all contexts have ended
    Limit(*this, its, {.held = used, .committed = used}).set_for({});
    return;
  }
  // All that is used, without what the asked context's pools have: that it says itself.
  const Bytes reserved = its.back()->pool().statistics().reserved.current;
  Bytes cached;
  for (Arena* const arena : its) {
    if (arena == its.back()) continue;
    const Statistics of_other = arena->pool().statistics();
    cached += of_other.cached.current;
  }
  const Bytes others = minus_or_zero(minus_or_zero(used, reserved), cached);
  Limit limit(*this, its, {.held = others, .committed = others});
  its.back()->batches().limit_to_use(limit);
}

void DeviceShare::return_wanted(std::chrono::nanoseconds most) noexcept {
  const std::int64_t time = now();
  std::int64_t next = next_look_.load(std::memory_order_relaxed);
  if (time < next || !next_look_.compare_exchange_strong(next, time + count_of(kLookAgain))) return;
  attempt(LogLevel::kDebug, "nothing is returned to the share", [&] {
    const std::int64_t refused = refused_.load(std::memory_order_relaxed);
    if (refused != 0 && time - refused > count_of(kWish)) {
      refused_.store(0, std::memory_order_relaxed);
      share_.forget_wish();
    }
    share_.repair();
    if (share_.lease() <= share_.floor()) return;
    if (!share_.is_wanted() && device_.account().budget() >= share_.lease()) return;
    lower_budget();
    device_.trim_to_budget(most);
    const Lock lock(device_.budget_mutex());
    (void)share_.lower(std::max(device_.account().budget(), device_.account().used()));
  });
}

}  // namespace weir::preload
