#include "tools/preload/context/pools.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace weir::preload {
namespace {

/// A segment of memory in stream order is at most the budget divided by this: anything alive in a
/// segment keeps all of it from cuMemAlloc.
constexpr std::uint64_t kSegmentShareInOrder = 16;

PoolOptions options_for(const Settings& settings, const Account& account) {
  PoolOptions options = settings.pool;
  // The account enforces the budget. Use by other programs shows when the driver refuses.
  options.budget = {BudgetRequest{.bytes = account.budget()}, settings.pool.budget.source};
  options.place = {.name = "GPU " + std::to_string(account.device()),
                   .device = static_cast<std::uint16_t>(account.device() + 1)};
  return options;
}

/// Returns the answer of the first pool that has one.
template <typename Ask>
auto first_answer(const auto& pools, const Ask& ask) {
  for (Pool* const pool : pools) {
    if (auto answer = ask(*pool)) return answer;
  }
  return decltype(ask(*pools.front()))();
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
      sums_(first_) {}

Pool& Pools::serving(StreamId stream) {
  if (!split_ || stream == fences_.sync()) return first_;
  Pool* const made = second();
  return made != nullptr ? *made : make_second();
}

Pool& Pools::make_second() {
  std::call_once(second_once_, [this] {
    PoolOptions options = options_;
    // Tensors are cut from driver memory; best if holes give their pages back.
    const PageSource* const pages = upstream_.pages();
    const bool paged = pages != nullptr && pages->page_size() <= first_.budget();
    options.kind = Setting<PoolKind>::by_default(paged ? PoolKind::kPaged : PoolKind::kBestFit);
    if (options.segment.source == "default") options.segment_share = kSegmentShareInOrder;
    options.place.name += ", in stream order";
    auto made = std::make_unique<Pool>(DeviceMemory{upstream_, fences_}, std::move(options));
    second_ = std::move(made);
    sums_.add(*second_);
    // Callers set the first pool's limits, then this one's if it exists. So one of the two threads
    // reaches this pool last.
    second_->set_limits(first_.budget(), before_growth(running_out(settings_.policy.policy.value)));
  });
  return *second();
}

void Pools::set_limits(Bytes budget, RunningOut running_out) {
  first_.set_limits(budget, running_out);
  if (Pool* const other = second()) other->set_limits(budget, running_out);
  sums_.set_budget(budget);
}

void* Pools::try_allocate(Bytes bytes, StreamId stream, std::string_view label, Attempt& attempt) {
  Pool& pool = serving(stream);
  void* const found = pool.try_allocate(bytes, stream, label, attempt);
  sums_.note_change();
  return found;
}

void Pools::fail(const Attempt& attempt) { serving(attempt.stream).fail(attempt); }

std::optional<Freed> Pools::try_deallocate(void* pointer, StreamId stream) {
  const auto ask = [&](Pool& pool) { return pool.try_deallocate(pointer, stream); };
  // Most memory freed on a stream was allocated in its order.
  const bool in_order = stream != fences_.everything() && second() != nullptr;
  const std::array<Pool*, 2> last_first{all().back(), all().front()};
  const auto freed = in_order ? first_answer(last_first, ask) : first_answer(all(), ask);
  if (freed) sums_.note_change();
  return freed;
}

void Pools::record_use(void* pointer, StreamId stream) {
  for (Pool* const pool : all()) {
    if (pool->find(pointer)) return pool->record_use(pointer, stream);
  }
}

std::optional<BlockInUse> Pools::find(const void* pointer) const {
  return first_answer(all(), [&](Pool& pool) { return pool.find(pointer); });
}

std::optional<BlockInUse> Pools::find_around(const void* address) const {
  return first_answer(all(), [&](Pool& pool) { return pool.find_around(address); });
}

std::optional<BlockInUse> Pools::disown(void* pointer) {
  const auto given = first_answer(all(), [&](Pool& pool) { return pool.disown(pointer); });
  if (given) sums_.note_change();
  return given;
}

void Pools::poll() {
  for (Pool* const pool : all()) pool->poll();
  sums_.note_change();
}

std::optional<Point> Pools::oldest(std::optional<Point> (Pool::*of_pool)() const) const {
  std::optional<Point> oldest;
  for (const Pool* const pool : all()) {
    const auto point = (pool->*of_pool)();
    if (!point) continue;
    if (!oldest || fences_.recorded(*point) < fences_.recorded(*oldest)) oldest = point;
  }
  return oldest;
}

Bytes Pools::release(Bytes need, bool may_release, const Pool* but) {
  Bytes released;
  for (Pool* const pool : all()) {
    if (pool == but || released >= need) continue;
    const Bytes reserved = pool->statistics().reserved.current;
    const Bytes keep = minus_or_zero(reserved, minus_or_zero(need, released));
    released += pool->trim(keep, may_release);
  }
  return released;
}

Bytes Pools::spare(const Pool* but) {
  Bytes spare;
  for (Pool* const pool : all()) {
    if (pool == but) continue;
    pool->poll();
    spare += pool->releasable();
  }
  sums_.note_change();
  return spare;
}

Bytes Pools::kept(const Pool* but) const {
  Bytes kept;
  for (const Pool* const pool : all()) {
    if (pool == but) continue;
    const Statistics now = pool->statistics();
    kept += minus_or_zero(now.reserved.current, now.allocated.current);
  }
  return kept;
}

std::vector<PoolBlock> Pools::blocks() const {
  std::vector<PoolBlock> blocks;
  for (const Pool* const pool : all()) {
    const std::vector<PoolBlock> more = pool->blocks();
    const auto middle = blocks.insert(blocks.end(), more.begin(), more.end());
    std::ranges::inplace_merge(blocks, middle, {}, &PoolBlock::begin);
  }
  return blocks;
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

Bytes Pools::trim(Bytes keep, bool may_release) {
  Bytes released;
  for (Pool* const pool : all()) {
    released += pool->trim(split_ && pool == &first_ ? Bytes{} : keep, may_release);
  }
  return released;
}

Bytes Pools::above(Bytes keep) const {
  Bytes above;
  for (const Pool* const pool : all()) {
    const Bytes kept = split_ && pool == &first_ ? Bytes{} : keep;
    above += std::min(pool->releasable(), minus_or_zero(pool->statistics().reserved.current, kept));
  }
  return above;
}

std::array<Pools::Part, 2> Pools::parts() const noexcept {
  if (!split_) return {{{"all", &first_}, {{}, nullptr}}};
  return {{{"cuMemAlloc", &first_}, {"stream order", second()}}};
}

}  // namespace weir::preload
