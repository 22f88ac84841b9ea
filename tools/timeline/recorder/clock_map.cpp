#include "tools/timeline/recorder/clock_map.hpp"

#include <algorithm>
#include <chrono>

namespace weir::timeline {
namespace {

std::uint64_t monotonic_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Rounds down, so that the result never decreases along the line.
std::uint64_t between(const ClockPair& a, const ClockPair& b, std::uint64_t ticks) noexcept {
  const std::uint64_t part = ticks - a.ticks;
  const std::uint64_t rise = b.ns - a.ns;
  const std::uint64_t run = b.ticks - a.ticks;
  if ((part | rise) >> 32U == 0) return a.ns + part * rise / run;
  __extension__ using Wide = unsigned __int128;
  return a.ns + static_cast<std::uint64_t>(static_cast<Wide>(part) * rise / run);
}

}  // namespace

ClockPair read_clocks(const TickClock& clock) noexcept {
  // Another thread may run between the two readings, so the quickest of several attempts counts.
  constexpr int kAttempts = 8;
  ClockPair best;
  std::uint64_t best_gap = UINT64_MAX;
  for (int i = 0; i < kAttempts; ++i) {
    const std::uint64_t before = clock.now();
    const std::uint64_t ns = monotonic_ns();
    const std::uint64_t gap = clock.now() - before;
    if (gap >= best_gap) continue;
    best_gap = gap;
    best = {.ticks = before + gap / 2, .ns = ns};
  }
  return best;
}

ClockMap::ClockMap(ClockPair first, double ns_per_tick)
    : first_(first), first_rate_(ns_per_tick), pairs_{first} {}

void ClockMap::add(ClockPair pair) {
  const ClockPair& last = pairs_.back();
  if (pair.ticks <= last.ticks || pair.ns <= last.ns) return;
  if (pairs_.size() == kMostPairs) pairs_.erase(pairs_.begin(), pairs_.begin() + kMostPairs / 2);
  pairs_.push_back(pair);
}

std::uint64_t ClockMap::ns(std::uint64_t ticks) const noexcept {
  if (ticks >= pairs_.back().ticks) return pairs_.back().ns;
  if (ticks < pairs_.front().ticks) {
    const double before = static_cast<double>(pairs_.front().ticks - ticks) * ns_per_tick() + 0.5;
    const auto whole = static_cast<std::uint64_t>(before);
    return whole < pairs_.front().ns ? pairs_.front().ns - whole : 0;
  }
  auto next = pairs_.end() - 1;
  if (ticks < (next - 1)->ticks) {  // most ticks are on the last line
    next = std::ranges::upper_bound(pairs_, ticks, {}, &ClockPair::ticks);
  }
  return between(*(next - 1), *next, ticks);
}

double ClockMap::ns_per_tick() const noexcept {
  const ClockPair& last = pairs_.back();
  if (last.ticks == first_.ticks) return first_rate_;
  return static_cast<double>(last.ns - first_.ns) / static_cast<double>(last.ticks - first_.ticks);
}

}  // namespace weir::timeline
