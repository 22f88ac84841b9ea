#include "tools/preload/context/own_memory.hpp"

#include <algorithm>
#include <utility>

#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

bool OwnMemory::is_default(CUmemoryPool pool) const noexcept {
  const Inside inside;
  CUmemoryPool its = nullptr;
  return driver_.cuDeviceGetDefaultMemPool != nullptr &&
         driver_.cuDeviceGetDefaultMemPool(&its, account_.device()) == CUDA_SUCCESS && its == pool;
}

template <typename Change>
void OwnMemory::with(CUmemoryPool pool, const Change& change) noexcept {
  const Lock lock(mutex_);
  const auto found = std::ranges::find(pools_, pool, &OfPool::pool);
  if (found != pools_.end()) change(*found);
}

void OwnMemory::add(CUmemoryPool pool) {
  const Lock lock(mutex_);
  if (std::ranges::find(pools_, pool, &OfPool::pool) != pools_.end()) return;
  pools_.push_back({.pool = pool});
  pools_known_.store(true, std::memory_order_relaxed);
}

bool OwnMemory::has(CUmemoryPool pool) const {
  const Lock lock(mutex_);
  return std::ranges::find(pools_, pool, &OfPool::pool) != pools_.end();
}

void OwnMemory::note_allocated(CUmemoryPool pool, Bytes bytes) noexcept {
  with(pool, [&](OfPool& its) { its.live += bytes; });
}

void OwnMemory::note_freed(CUmemoryPool pool, Bytes bytes) noexcept {
  with(pool, [&](OfPool& its) { its.live -= bytes; });
  ++frees_;
}

void OwnMemory::end(CUmemoryPool pool, Bytes left, Points points) noexcept {
  CUmemoryPool ended = pool;
  (void)current_.compare_exchange_strong(ended, nullptr);
  {
    const Lock lock(mutex_);
    std::erase_if(pools_, [pool](const OfPool& each) { return each.pool == pool; });
    left_ += left;
    points_ = std::move(points);  // behind those before
  }
  ++frees_;
  (void)refresh();
}

Bytes OwnMemory::left_of_ended() {
  Points points;
  {
    const Lock lock(mutex_);
    if (left_.count == 0) return {};
    points = points_;
  }
  for (const auto& [progress, point] : points) {
    if (progress->reached(point)) continue;
    const Lock lock(mutex_);
    return left_;
  }
  const Lock lock(mutex_);
  if (points_ == points) left_ = {};  // otherwise another pool has ended meanwhile
  return left_;
}

std::vector<OwnMemory::OfPool> OwnMemory::pools() const {
  const Lock lock(mutex_);
  return pools_;
}

OwnMemory::Level OwnMemory::level_of(CUmemoryPool pool) const noexcept {
  cuuint64_t reserved = 0;
  cuuint64_t used = 0;
  const Inside inside;
  if (driver_.cuMemPoolGetAttribute == nullptr ||
      driver_.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) !=
          CUDA_SUCCESS ||
      driver_.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) !=
          CUDA_SUCCESS) {
    return {};
  }
  return {{reserved}, {used}};
}

OwnMemory::Level OwnMemory::level_of_graphs() const noexcept {
  const auto ask = driver_.cuDeviceGetGraphMemAttribute;
  cuuint64_t reserved = 0;
  cuuint64_t used = 0;
  if (!graphs_.load() || ask == nullptr) return {};
  const Inside inside;
  (void)ask(account_.device(), CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved);
  (void)ask(account_.device(), CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used);
  return {{reserved}, {used}};
}

// Of two readings at once, the one that began later counts: it saw all that its thread did before.
Bytes OwnMemory::refresh() noexcept {
  if (!is_used()) return {};
  return attempt<Bytes>(LogLevel::kDebug, "own pools are not counted", {}, [&]() -> Bytes {
    const std::uint64_t reading = ++readings_;
    Bytes reserved = left_of_ended();
    Bytes unused;
    Bytes pending = reserved;
    for (const OfPool& each : pools()) {
      const Level level = level_of(each.pool);
      reserved += level.reserved;
      unused += minus_or_zero(level.reserved, level.used);
      pending += minus_or_zero(level.used, each.live);
    }
    const Level graphs = level_of_graphs();
    unused += minus_or_zero(graphs.reserved, graphs.used);
    const Lock lock(mutex_);
    if (reading < newest_) return {};
    newest_ = reading;
    unused_.store(unused.count);
    pending_.store(pending.count);
    return account_.set_passed(Kind::kPools, reserved) +
           account_.set_passed(Kind::kGraphs, graphs.reserved);
  });
}

Bytes OwnMemory::trim(Bytes need) noexcept {
  if (!is_used()) return {};
  Bytes released = refresh();
  attempt(LogLevel::kDebug, "own pools are not trimmed", [&] {
    const RelaxedCaptures relaxed(driver_);
    const Inside inside;
    if (graphs_.load() && driver_.cuDeviceGraphMemTrim != nullptr) {
      (void)driver_.cuDeviceGraphMemTrim(account_.device());
    }
    Bytes left = minus_or_zero(need, released);
    for (const OfPool& each : pools()) {
      if (left.count == 0 || driver_.cuMemPoolTrimTo == nullptr) break;
      const Level level = level_of(each.pool);
      const Bytes part = std::min(left, minus_or_zero(level.reserved, level.used));
      if (part.count == 0) continue;
      (void)driver_.cuMemPoolTrimTo(each.pool, minus_or_zero(level.reserved, part).count);
      left -= part;
    }
  });
  return released += refresh();
}

OwnMemory::Asking::Asking(OwnMemory& memory, CUmemoryPool pool, Bytes bytes) noexcept
    : memory_(memory), pool_(pool), bytes_(bytes) {
  memory_.with(pool_, [&](OfPool& its) { its.asked += bytes_; });
}

OwnMemory::Asking::~Asking() {
  memory_.with(pool_, [&](OfPool& its) {
    its.asked -= bytes_;
    its.lacks -= lacks_;
  });
}

Bytes OwnMemory::Asking::lacks() noexcept {
  const Level level = memory_.level_of(pool_);
  memory_.with(pool_, [&](OfPool& its) {
    its.lacks -= lacks_;
    const Bytes more = minus_or_zero(level.used + its.asked, level.reserved + its.lacks);
    lacks_ = in_pieces(more);
    its.lacks += lacks_;
  });
  return lacks_;
}

}  // namespace weir::preload
