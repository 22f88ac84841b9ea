#include "tools/preload/context/own_memory.hpp"

#include <algorithm>

#include "tools/preload/driver/scope.hpp"

namespace weir::preload {
namespace {

/// What the driver maps at a time (CU_MEM_ALLOC_GRANULARITY_MINIMUM of today's devices).
constexpr Bytes kGranularity = mib(2);

}  // namespace

bool OwnMemory::is_default(CUmemoryPool pool) const noexcept {
  const Inside inside;
  CUmemoryPool its = nullptr;
  return driver_.cuDeviceGetDefaultMemPool != nullptr &&
         driver_.cuDeviceGetDefaultMemPool(&its, account_.device()) == CUDA_SUCCESS && its == pool;
}

void OwnMemory::add(CUmemoryPool pool) {
  const Lock lock(mutex_);
  if (std::ranges::find(pools_, pool, &OfPool::pool) != pools_.end()) return;
  pools_.push_back({pool, {}});
  pools_known_.store(true, std::memory_order_relaxed);
}

void OwnMemory::remove(CUmemoryPool pool) noexcept {
  CUmemoryPool ended = pool;
  (void)current_.compare_exchange_strong(ended, nullptr);
  {
    const Lock lock(mutex_);
    std::erase_if(pools_, [pool](const OfPool& each) { return each.pool == pool; });
  }
  (void)refresh();
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

// Of two readings at once, the one that began later counts: it saw all that its thread did before.
Bytes OwnMemory::refresh() noexcept {
  if (!is_used()) return {};
  return attempt<Bytes>(LogLevel::kDebug, "own pools are not counted", {}, [&]() -> Bytes {
    const std::uint64_t reading = ++readings_;
    Bytes reserved;
    Bytes used;
    for (const OfPool& each : pools()) {
      const Level level = level_of(each.pool);
      reserved += level.reserved;
      used += level.used;
    }
    cuuint64_t graphs = 0;
    if (graphs_.load() && driver_.cuDeviceGetGraphMemAttribute != nullptr) {
      const Inside inside;
      (void)driver_.cuDeviceGetGraphMemAttribute(account_.device(),
                                                 CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &graphs);
    }
    const Lock lock(mutex_);
    if (reading < newest_) return {};
    newest_ = reading;
    unused_.store(minus_or_zero(reserved, used).count);
    of_graphs_.store(graphs);
    return account_.set_passed(Kind::kPools, reserved) +
           account_.set_passed(Kind::kGraphs, {graphs});
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
  const Lock lock(memory_.mutex_);
  for (OfPool& each : memory_.pools_) {
    if (each.pool == pool_) each.asked += bytes_;
  }
}

OwnMemory::Asking::~Asking() {
  const Lock lock(memory_.mutex_);
  for (OfPool& each : memory_.pools_) {
    if (each.pool == pool_) each.asked -= bytes_;
  }
}

Bytes OwnMemory::Asking::lacks() const noexcept {
  const Level level = memory_.level_of(pool_);
  Bytes asked = bytes_;
  const Lock lock(memory_.mutex_);
  for (const OfPool& each : memory_.pools_) {
    if (each.pool == pool_) asked = each.asked;
  }
  const Bytes more = minus_or_zero(level.used + asked, level.reserved);
  return kGranularity * ((more.count + kGranularity.count - 1) / kGranularity.count);
}

}  // namespace weir::preload
