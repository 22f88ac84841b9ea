#include "tools/preload/context/pacer.hpp"

namespace weir::preload {
namespace {

constexpr std::uint64_t kMostGiveUps = 2;

}  // namespace

Pacer::Pacer(Pools& pools, Fences& fences, const Settings& settings)
    : pools_(pools), fences_(fences), settings_(settings) {
  pools_.sums().look_out(settings.policy.policy.value == Policy::kThrottled);
}

void Pacer::hold_back(Call& call) {
  if (settings_.policy.policy.value != Policy::kThrottled) return;
  // Checked before asking the device, which costs most with many streams.
  if (InCallback::now()) return;
  const Pressure before = pools_.pressure();
  if (!holds_much(before.awaiting, before.budget)) return;
  const WaitLimit limit{.until = call.until(settings_.max_wait.value)};
  pools_.poll();
  const auto start = Fences::Clock::now();
  const TimelineSlice slice;
  std::optional<Pace> waited;
  for (;;) {
    const auto point = pools_.oldest(&Pool::oldest_awaiting);
    if (!point) break;
    const auto behind = Fences::Clock::now() - fences_.recorded(*point);
    const Pace decided = pace(pools_.pressure(), behind, settings_.policy.policy.value,
                              settings_.policy.run_ahead.value);
    if (decided == Pace::kGo || fences_.is_parked(*point)) break;
    {
      const Lock lock(mutex_);
      if (give_ups_ >= kMostGiveUps || (given_up_ && *given_up_ == *point)) break;
    }
    if (!waited) waited = decided;
    if (!fences_.wait(*point, limit)) {
      give_up(*point);
      break;
    }
    pools_.poll();
  }
  if (!waited) return;
  const auto stall = *waited == Pace::kWaitSoft ? TimelineStall::kRunAhead : TimelineStall::kBudget;
  slice.write({.device = pools_.device(),
               .kind = TimelineKind::kPace,
               .detail = static_cast<std::uint8_t>(stall)});
  const Lock lock(mutex_);
  ++waits_.count;
  waits_.total += Fences::Clock::now() - start;
}

// The awaited work may depend on this thread: let it go on, and do not wait for this point again. A
// program that does this twice would otherwise be held back at each step.
void Pacer::give_up(Point point) {
  bool for_good = false;
  {
    const Lock lock(mutex_);
    given_up_ = point;
    for_good = ++give_ups_ >= kMostGiveUps;
  }
  if (for_good) pools_.sums().look_out(false);
}

Waits Pacer::waits() const {
  const Lock lock(mutex_);
  return waits_;
}

}  // namespace weir::preload
