#include "tools/preload/context/pools.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "tools/preload/context/pace.hpp"

namespace weir::preload {
namespace {

/// A segment of memory in stream order is at most the budget divided by this: anything alive in a
/// segment keeps all of it from cuMemAlloc.
constexpr std::uint64_t kSegmentShareInOrder = 16;

constexpr std::array kCounts{
    &Statistics::hits,         &Statistics::misses,         &Statistics::handovers,
    &Statistics::waits,        &Statistics::retries,        &Statistics::releases,
    &Statistics::mapped_pages, &Statistics::unmapped_pages, &Statistics::failures};

PoolOptions options_for(const Settings& settings, const Account& account) {
  PoolOptions options = settings.pool;
  // The account enforces the budget. Use by other programs shows when the driver refuses.
  options.budget = {BudgetRequest{.bytes = account.budget()}, settings.pool.budget.source};
  options.place = {.name = "GPU " + std::to_string(account.device()),
                   .device = static_cast<std::uint16_t>(account.device() + 1)};
  return options;
}

// In kAllGauges.
constexpr std::size_t kAwaiting = 2;
constexpr std::size_t kHeld = 5;
static_assert(kAllGauges[kAwaiting] == &Statistics::awaiting);
static_assert(kAllGauges[kHeld] == &Statistics::held);

void raise(std::atomic<std::uint64_t>& peak, Bytes level) noexcept {
  std::uint64_t highest = peak.load(std::memory_order_relaxed);
  while (highest < level.count &&
         !peak.compare_exchange_weak(highest, level.count, std::memory_order_relaxed)) {
  }
}

}  // namespace

Pools::Pools(DriverUpstream& upstream, Fences& fences, const Account& account,
             const Settings& settings)
    : upstream_(upstream),
      fences_(fences),
      settings_(settings),
      split_(settings.auto_pools.value),
      options_(options_for(settings, account)),
      source_(account.source()),
      first_({upstream_, fences_}, options_),
      level_(first_.budget()),
      budget_(first_.budget().count) {}

Pool& Pools::serving(StreamId stream) {
  if (!split_ || stream == fences_.sync()) return first_;
  Pool* const made = second();
  return made != nullptr ? *made : make_second();
}

// Tensors are cut from driver memory; best if holes give their pages back.
PoolKind Pools::kind_in_order() {
  const PageSource* const pages = upstream_.pages();
  const bool paged = pages != nullptr && pages->page_size() <= first_.budget();
  return paged ? PoolKind::kPaged : PoolKind::kBestFit;
}

Pool& Pools::make_second() {
  std::call_once(second_once_, [this] {
    PoolOptions options = options_;
    options.kind = Setting<PoolKind>::by_default(kind_in_order());
    if (options.segment.source == "default") options.segment_share = kSegmentShareInOrder;
    options.place.name += ", in stream order";
    auto made = std::make_unique<Pool>(DeviceMemory{upstream_, fences_}, std::move(options));
    const Statistics until_now = first_.statistics();
    for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
      const Bytes peak = (until_now.*kAllGauges[i]).peak;
      raise(peaks_[i], peak);  // which was reset in between
      raise(recent_[i], peak);
    }
    second_owner_ = std::move(made);
    second_.store(second_owner_.get());
    // Callers set the first pool's limits, then this one's if it exists. So one of the two threads
    // reaches this pool last.
    second_owner_->set_limits(first_.budget(),
                              before_growth(running_out(settings_.policy.policy.value)));
  });
  return *second();
}

void Pools::set_limits(Bytes budget, RunningOut running_out) {
  first_.set_limits(budget, running_out);
  if (Pool* const other = second_.load()) other->set_limits(budget, running_out);
  const Lock lock(level_mutex_);
  level_.set_budget(budget);
  budget_.store(budget.count, std::memory_order_relaxed);
  follow_level();
}

void* Pools::try_allocate(Bytes bytes, StreamId stream, std::string_view label, Attempt& attempt) {
  Pool& pool = serving(stream);
  void* const found = pool.try_allocate(bytes, stream, label, attempt);
  note_change();
  return found;
}

std::optional<Bytes> Pools::block_size(Bytes bytes, StreamId stream) const noexcept {
  const Pool* const other = stream == fences_.sync() ? nullptr : second();
  return (other != nullptr ? *other : first_).block_size(bytes);
}

void Pools::fail(const Attempt& attempt) { serving(attempt.stream).fail(attempt); }

std::array<Pool*, 2> Pools::looked_through(StreamId stream) const noexcept {
  // Most memory freed on a stream was allocated in its order.
  const auto [first, other] = all();
  if (other == nullptr || stream == fences_.everything()) return {first, other};
  return {other, first};
}

std::optional<Freed> Pools::try_deallocate(void* pointer, StreamId stream) {
  for (Pool* const pool : looked_through(stream)) {
    if (pool == nullptr) continue;
    const auto freed = pool->try_deallocate(pointer, stream);
    if (!freed) continue;
    note_change();
    return freed;
  }
  return std::nullopt;
}

void Pools::record_use(void* pointer, StreamId stream) {
  for (Pool* const pool : all()) {
    if (pool != nullptr && pool->find(pointer)) return pool->record_use(pointer, stream);
  }
}

std::optional<BlockInUse> Pools::find(const void* pointer) const {
  for (const Pool* const pool : all()) {
    if (pool == nullptr) continue;
    if (const auto found = pool->find(pointer)) return found;
  }
  return std::nullopt;
}

std::optional<BlockInUse> Pools::find_around(const void* address) const {
  for (const Pool* const pool : all()) {
    if (pool == nullptr) continue;
    if (const auto found = pool->find_around(address)) return found;
  }
  return std::nullopt;
}

std::optional<BlockInUse> Pools::disown(void* pointer) {
  for (Pool* const pool : all()) {
    if (pool == nullptr) continue;
    const auto given = pool->disown(pointer);
    if (!given) continue;
    note_change();
    return given;
  }
  return std::nullopt;
}

void Pools::poll() {
  for (Pool* const pool : all()) {
    if (pool != nullptr) pool->poll();
  }
  note_change();
}

std::optional<Point> Pools::oldest(std::optional<Point> (Pool::*of_pool)() const) const {
  std::optional<Point> oldest;
  for (const Pool* const pool : all()) {
    if (pool == nullptr) continue;
    const auto point = (pool->*of_pool)();
    if (!point) continue;
    if (!oldest || fences_.recorded(*point) < fences_.recorded(*oldest)) oldest = point;
  }
  return oldest;
}

std::optional<Point> Pools::oldest_awaiting() const { return oldest(&Pool::oldest_awaiting); }

std::optional<Point> Pools::oldest_outstanding() const { return oldest(&Pool::oldest_outstanding); }

Bytes Pools::release(Bytes need, const Pool* but) {
  Bytes released;
  for (Pool* const pool : all()) {
    if (pool == nullptr || pool == but || released >= need) continue;
    const Bytes reserved = pool->statistics().reserved.current;
    released += pool->trim(minus_or_zero(reserved, minus_or_zero(need, released)));
  }
  return released;
}

Bytes Pools::spare(const Pool* but) {
  Bytes cached;
  for (Pool* const pool : all()) {
    if (pool == nullptr || pool == but) continue;
    pool->poll();
    cached += pool->statistics().cached.current;
  }
  note_change();
  return cached;
}

Bytes Pools::kept(const Pool* but) const {
  Bytes kept;
  for (const Pool* const pool : all()) {
    if (pool == nullptr || pool == but) continue;
    const Statistics now = pool->statistics();
    kept += minus_or_zero(now.reserved.current, now.allocated.current);
  }
  return kept;
}

Pressure Pools::pressure() const {
  note_change();
  Pressure sum = first_.pressure();
  if (const Pool* const other = second()) {
    const Pressure more = other->pressure();
    sum.held += more.held;
    sum.awaiting += more.awaiting;
    sum.cached += more.cached;
    sum.number += more.number;
  }
  const Lock lock(level_mutex_);
  sum.level = level_.level();
  return sum;
}

PressureTimes Pools::at_level() const noexcept {
  const Lock lock(level_mutex_);
  return level_.times(PressureGauge::Clock::now());
}

Bytes Pools::level_of(std::size_t gauge) const noexcept {
  const Pool* const other = second();
  return first_.level(gauge) + (other != nullptr ? other->level(gauge) : Bytes{});
}

bool Pools::much_awaits() const noexcept {
  return holds_much(level_of(kAwaiting), {budget_.load(std::memory_order_relaxed)});
}

// What other threads change meanwhile may be missed, until the next change or call of pressure().
void Pools::follow_level() const noexcept {
  (void)level_.follow(has_ended_ ? Bytes{} : level_of(kHeld));
  steady_from_.store(level_.steady().from.count, std::memory_order_relaxed);
  steady_below_.store(level_.steady().below.count, std::memory_order_relaxed);
  const bool watches = looks_out_ && level_.level() == PressureLevel::kHard;
  watches_.store(watches, std::memory_order_relaxed);
  const bool waits = watches && much_awaits();
  if (waits_at_limit_.exchange(waits, std::memory_order_relaxed) == waits) return;
  wait_at_limit.fetch_add(waits ? 1 : ~std::uint64_t{0}, std::memory_order_relaxed);
}

void Pools::look_out(bool looks_out) noexcept {
  const Lock lock(level_mutex_);
  looks_out_ = looks_out;
  follow_level();
}

void Pools::forget() noexcept {
  const Lock lock(level_mutex_);
  looks_out_ = false;
  has_ended_ = true;
  follow_level();
}

Statistics Pools::sum() const {
  Statistics sum = first_.statistics();
  const Pool* const other = second();
  if (other == nullptr) return sum;
  const Statistics more = other->statistics();
  for (Gauge Statistics::*gauge : kAllGauges) {
    (sum.*gauge).current += (more.*gauge).current;
    (sum.*gauge).peak = (sum.*gauge).current;
  }
  for (std::uint64_t Statistics::*count : kCounts) sum.*count += more.*count;
  sum.waited += more.waited;
  return sum;
}

// The sum of both pools' peaks would exceed the real peak. As a rule it takes no lock, since every
// allocation and free ends here.
void Pools::note_change() const noexcept {
  const Bytes held = level_of(kHeld);
  const bool is_steady = held.count >= steady_from_.load(std::memory_order_relaxed) &&
                         held.count < steady_below_.load(std::memory_order_relaxed);
  const bool same_waits = !watches_.load(std::memory_order_relaxed) ||
                          much_awaits() == waits_at_limit_.load(std::memory_order_relaxed);
  if (!is_steady || !same_waits) {
    const Lock lock(level_mutex_);
    follow_level();
  }
  if (second() == nullptr) return;
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    const Bytes level = level_of(i);
    if (level.count <= recent_[i].load(std::memory_order_relaxed)) continue;
    raise(peaks_[i], level);
    raise(recent_[i], level);
  }
}

Pools::RecentPeaks Pools::recent_peaks() const {
  if (second() == nullptr) {
    const Statistics now = first_.statistics();
    return {now.allocated.peak, now.reserved.peak};
  }
  note_change();
  RecentPeaks peaks;
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    if (kAllGauges[i] == &Statistics::allocated) peaks.allocated = {recent_[i].load()};
    if (kAllGauges[i] == &Statistics::reserved) peaks.reserved = {recent_[i].load()};
  }
  return peaks;
}

void Pools::reset_recent_peaks() {
  if (second() == nullptr) {
    (void)statistics();  // saves the peaks in those of the sums
    first_.reset_peaks();
  }
  const Statistics now = sum();
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    const Bytes level = (now.*kAllGauges[i]).current;
    raise(peaks_[i], level);  // never below the recent peak
    recent_[i].store(level.count);
  }
}

std::vector<PoolBlock> Pools::blocks() const {
  std::vector<PoolBlock> blocks = first_.blocks();
  if (const Pool* const other = second()) {
    const std::vector<PoolBlock> more = other->blocks();
    std::vector<PoolBlock> both(blocks.size() + more.size());
    std::ranges::merge(blocks, more, both.begin(), {}, &PoolBlock::begin, &PoolBlock::begin);
    blocks.swap(both);
  }
  return blocks;
}

Statistics Pools::statistics() const {
  Statistics now = sum();
  for (std::size_t i = 0; i < kAllGauges.size(); ++i) {
    Gauge& gauge = now.*kAllGauges[i];
    raise(peaks_[i], gauge.peak);
    gauge.peak = {peaks_[i].load()};
  }
  now.pressure = at_level();
  return now;
}

std::string Pools::holders(std::size_t most) const {
  std::string text = first_.holders(most);
  const Pool* const other = second();
  return other == nullptr ? text : text + "; in stream order: " + other->holders(most);
}

Statistics Pools::in_order() const {
  if (const Pool* const pool = of_stream_order()) return pool->statistics();
  Statistics none;
  none.budget = first_.budget();
  return none;
}

void Pools::reset_peaks_in_order() {
  (void)statistics();  // saves the peaks in those of the sums
  if (Pool* const pool = of_stream_order()) pool->reset_peaks();
}

void Pools::trim_to(Bytes keep) {
  if (split_) (void)first_.trim();
  if (Pool* const pool = of_stream_order()) (void)pool->trim(keep);
}

std::array<Pools::Part, 2> Pools::parts() const noexcept {
  if (!split_) return {{{"all", &first_}, {{}, nullptr}}};
  return {{{"cuMemAlloc", &first_}, {"stream order", second()}}};
}

}  // namespace weir::preload
