#include "tools/preload/context/pool_sums.hpp"

namespace weir::preload {
namespace {

constexpr std::array kCounts{
    &Statistics::hits,         &Statistics::misses,         &Statistics::handovers,
    &Statistics::waits,        &Statistics::retries,        &Statistics::releases,
    &Statistics::mapped_pages, &Statistics::unmapped_pages, &Statistics::failures};

/// Returns the place of a gauge in kAllGauges.
consteval std::size_t place_of(Gauge Statistics::*gauge) {
  std::size_t place = 0;
  while (kAllGauges.at(place) != gauge) ++place;
  return place;
}

void raise(std::atomic<std::uint64_t>& peak, Bytes level) noexcept {
  std::uint64_t highest = peak.load(std::memory_order_relaxed);
  while (highest < level.count &&
         !peak.compare_exchange_weak(highest, level.count, std::memory_order_relaxed)) {
  }
}

}  // namespace

void PoolSums::add(Pool& second) {
  const Statistics until_now = pools_.front()->statistics();
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    const Bytes peak = (until_now.*kAllGauges[i]).peak;
    raise(peaks_[i], peak);  // which was reset in between
    raise(recent_[i], peak);
  }
  pools_.back() = &second;
  count_.store(pools_.size());
}

// The sum of both pools' peaks would exceed the real peak. As a rule it takes no lock, since every
// allocation and free ends here.
void PoolSums::note_change() noexcept {
  const Bytes held = level_of(place_of(&Statistics::held));
  const bool is_steady = held.count >= steady_from_.load(std::memory_order_relaxed) &&
                         held.count < steady_below_.load(std::memory_order_relaxed);
  const bool same_waits = !watches_.load(std::memory_order_relaxed) ||
                          much_awaits() == waits_at_limit_.load(std::memory_order_relaxed);
  if (!is_steady || !same_waits) {
    const Lock lock(mutex_);
    follow_level();
  }
  if (pools().size() == 1) return;
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    const Bytes level = level_of(i);
    if (level.count <= recent_[i].load(std::memory_order_relaxed)) continue;
    raise(peaks_[i], level);
    raise(recent_[i], level);
  }
}

void PoolSums::set_budget(Bytes budget) noexcept {
  const Lock lock(mutex_);
  level_.set_budget(budget);
  budget_.store(budget.count, std::memory_order_relaxed);
  follow_level();
}

Statistics PoolSums::sum() const {
  Statistics sum = pools_.front()->statistics();
  for (const Pool* const pool : pools().subspan(1)) {
    const Statistics more = pool->statistics();
    for (Gauge Statistics::*gauge : kAllGauges) {
      (sum.*gauge).current += (more.*gauge).current;
      (sum.*gauge).peak = (sum.*gauge).current;
    }
    for (std::uint64_t Statistics::*count : kCounts) sum.*count += more.*count;
    sum.waited += more.waited;
  }
  return sum;
}

Statistics PoolSums::statistics() {
  Statistics now = sum();
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    Gauge& gauge = now.*kAllGauges[i];
    raise(peaks_[i], gauge.peak);
    gauge.peak = {peaks_[i].load()};
  }
  now.pressure = at_level();
  return now;
}

PoolSums::RecentPeaks PoolSums::recent_peaks() {
  if (pools().size() == 1) {
    const Statistics now = pools_.front()->statistics();
    return {now.allocated.peak, now.reserved.peak};
  }
  note_change();
  return {{recent_[place_of(&Statistics::allocated)].load()},
          {recent_[place_of(&Statistics::reserved)].load()}};
}

void PoolSums::reset_recent_peaks() {
  const Statistics now = statistics();  // saves the peaks: those of the sums are never below
  if (pools().size() == 1) pools_.front()->reset_peaks();
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    recent_[i].store((now.*kAllGauges[i]).current.count);
  }
}

Pressure PoolSums::pressure() {
  note_change();
  Pressure sum = pools_.front()->pressure();
  for (const Pool* const pool : pools().subspan(1)) {
    const Pressure more = pool->pressure();
    sum.held += more.held;
    sum.awaiting += more.awaiting;
    sum.cached += more.cached;
    sum.number += more.number;
  }
  const Lock lock(mutex_);
  sum.level = level_.level();
  return sum;
}

PressureTimes PoolSums::at_level() const noexcept {
  const Lock lock(mutex_);
  return level_.times(PressureGauge::Clock::now());
}

void PoolSums::look_out(bool looks_out) noexcept {
  const Lock lock(mutex_);
  looks_out_ = looks_out;
  follow_level();
}

void PoolSums::forget() noexcept {
  const Lock lock(mutex_);
  looks_out_ = false;
  has_ended_ = true;
  follow_level();
}

Bytes PoolSums::level_of(std::size_t gauge) const noexcept {
  Bytes sum;
  for (const Pool* const pool : pools()) sum += pool->level(gauge);
  return sum;
}

bool PoolSums::much_awaits() const noexcept {
  return holds_much(level_of(place_of(&Statistics::awaiting)),
                    {budget_.load(std::memory_order_relaxed)});
}

// What other threads change meanwhile may be missed, until the next change or call of pressure().
void PoolSums::follow_level() noexcept {
  (void)level_.follow(has_ended_ ? Bytes{} : level_of(place_of(&Statistics::held)));
  steady_from_.store(level_.steady().from.count, std::memory_order_relaxed);
  steady_below_.store(level_.steady().below.count, std::memory_order_relaxed);
  const bool watches = looks_out_ && level_.level() == PressureLevel::kHard;
  watches_.store(watches, std::memory_order_relaxed);
  const bool waits = watches && much_awaits();
  if (waits_at_limit_.exchange(waits, std::memory_order_relaxed) == waits) return;
  wait_at_limit.fetch_add(waits ? 1 : ~std::uint64_t{0}, std::memory_order_relaxed);
}

}  // namespace weir::preload
