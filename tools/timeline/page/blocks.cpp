#include "tools/timeline/page/blocks.hpp"

#include <algorithm>
#include <map>

namespace weir::timeline {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 52U;  // a JavaScript number holds it exactly

[[nodiscard]] bool of_pool(TimelineKind kind) {
  return kind <= TimelineKind::kPoolEnd && kind != TimelineKind::kPressure;
}
[[nodiscard]] bool of_driver(TimelineKind kind) {
  return kind == TimelineKind::kDriverAlloc || kind == TimelineKind::kDriverFree ||
         kind == TimelineKind::kDriverPool;
}

// The order of pools: device, host, then what a profiler saw.
enum Rank : std::uint8_t { kOfDevice, kOfHost, kDriverDevice, kDriverPinned, kDriverPools };
struct PoolKey {
  Rank rank{};
  std::uint16_t source = 0;
  friend auto operator<=>(const PoolKey&, const PoolKey&) = default;
};

[[nodiscard]] PoolRecords named(const Process& process, PoolKey key,
                                const std::map<std::uint16_t, TimelineRecord>& pools) {
  PoolRecords out;
  out.source = key.source;
  out.host = key.rank == kOfHost || key.rank == kDriverPinned;
  out.driver = key.rank >= kDriverDevice;
  if (key.rank == kDriverDevice) {
    out.name = "Device memory from the driver";
  } else if (key.rank == kDriverPinned) {
    out.name = "Pinned memory from the driver";
  } else if (key.rank == kDriverPools) {
    out.name = "The driver's own pools";
  } else {
    const auto at = pools.find(key.source);
    const std::string_view name = at == pools.end() ? "" : process.name(at->second.name);
    out.name = name.empty() ? "Pool " + std::to_string(key.source) : std::string(name);
  }
  return out;
}

[[nodiscard]] Rank driver_rank(const TimelineRecord& record) {
  if (record.kind == TimelineKind::kDriverPool) {
    return kDriverPools;
  }
  return is_of_host(record) ? kDriverPinned : kDriverDevice;
}

}  // namespace

BatchKinds batch_kinds(const Process& process) {
  BatchKinds kinds;
  for (const TimelineRecord& record : process.records) {
    if (record.kind == TimelineKind::kAdmit) {
      kinds[record.batch] = record.name;
    }
  }
  return kinds;
}

std::vector<PoolRecords> pools_of(const Process& process) {
  std::map<std::uint16_t, TimelineRecord> pools;
  for (const TimelineRecord& record : process.records) {
    if (record.kind == TimelineKind::kPool) {
      pools[record.source] = record;
    }
  }
  std::map<PoolKey, std::vector<std::uint32_t>> orders;
  const auto& records = process.records;
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    if (of_pool(records[i].kind)) {
      const auto at = pools.find(records[i].source);
      const Rank rank = at != pools.end() && at->second.detail == 1 ? kOfHost : kOfDevice;
      orders[{rank, records[i].source}].push_back(i);
    } else if (of_driver(records[i].kind)) {
      orders[{driver_rank(records[i]), 0}].push_back(i);
    }
  }
  std::vector<PoolRecords> out;
  for (auto& [key, order] : orders) {
    // A pool's own sequence numbers decide: threads may have read the time in another order.
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
      return records[a].sequence < records[b].sequence;
    };
    if (key.rank < kDriverDevice && !std::is_sorted(order.begin(), order.end(), earlier)) {
      std::stable_sort(order.begin(), order.end(), earlier);
    }
    out.push_back(named(process, key, pools));
    out.back().order = std::move(order);
  }
  return out;
}

std::uint64_t LiveBlocks::reserved() const noexcept {
  return std::min(kMost, allocated_ + awaiting_ + cached_);
}

void LiveBlocks::clear() {
  where_.clear();
  gone_.swap(blocks_);
  left_ = gone_;
  left_.insert(left_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  waiting_bytes_ = 0;
  bytes_ = 0;
  requested_ = 0;
}

void LiveBlocks::insert(const TimelineRecord& record, std::uint64_t id) {
  const auto kind = kinds_->find(record.batch);
  Block block;
  block.id = id;
  block.begin = time_;
  block.bytes = std::min(record.bytes, kMost);
  block.requested = std::min(pool_->driver ? record.bytes : record.requested, kMost);
  block.name = record.name;
  block.site = record.site;
  block.batch = record.batch;
  block.kind = kind == kinds_->end() ? 0 : kind->second;
  block.from_before = record.kind == TimelineKind::kLive;
  where_[id] = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back(block);
  bytes_ += block.bytes;
  requested_ += block.requested;
}

void LiveBlocks::erase(std::uint64_t id) {
  const auto at = where_.find(id);
  if (at == where_.end()) {
    return;
  }
  const std::uint32_t slot = at->second;
  where_.erase(at);
  gone_.push_back(blocks_[slot]);
  if (slot + 1 != blocks_.size()) {
    blocks_[slot] = blocks_.back();
    where_[blocks_[slot].id] = slot;
  }
  blocks_.pop_back();
  bytes_ -= gone_.back().bytes;
  requested_ -= gone_.back().requested;
}

void LiveBlocks::take_statistics(const TimelineRecord& record) {
  if (record.kind == TimelineKind::kDriverPool) {
    // The driver reports no blocks of its pools, and no rounding.
    driver_pools_.add(record);
    allocated_ = std::min(driver_pools_.used(), kMost);
    requested_ = allocated_;
    const std::uint64_t reserved = std::min(driver_pools_.reserved(), kMost);
    cached_ = reserved - std::min(reserved, allocated_);
    return;
  }
  if (pool_->driver || record.kind == TimelineKind::kLive) {
    allocated_ = bytes_;
    return;
  }
  allocated_ = std::min(record.allocated, kMost);
  awaiting_ = std::min(record.awaiting, kMost);
  cached_ = std::min(record.cached, kMost);
}

void LiveBlocks::free(const TimelineRecord& record, std::uint64_t id) {
  erase(id);
  if (record.kind == TimelineKind::kFree && record.detail == 1) {
    for (const Block& block : gone_) {
      waiting_.push_back(block);
      waiting_bytes_ += block.bytes;
    }
  } else {
    left_ = gone_;
  }
}

void LiveBlocks::settle() {
  while (waiting_bytes_ > awaiting_ && !waiting_.empty()) {
    Block& oldest = waiting_.front();
    const std::uint64_t passed = std::min(oldest.bytes, waiting_bytes_ - awaiting_);
    left_.push_back(oldest);
    left_.back().bytes = passed;
    waiting_bytes_ -= passed;
    oldest.bytes -= passed;
    if (oldest.bytes == 0) {
      waiting_.pop_front();
    }
  }
}

LiveBlocks::Step LiveBlocks::apply(const TimelineRecord& record) {
  time_ = std::max(time_, record.begin);
  batch_ = record.batch;
  gone_.clear();
  left_.clear();
  Step step;
  step.time = time_;
  step.changed = true;
  const std::uint64_t id = pool_->driver ? record.sequence : record.id;
  switch (record.kind) {
    case TimelineKind::kPool:
    case TimelineKind::kPoolEnd:
      clear();
      break;
    case TimelineKind::kLive:
    case TimelineKind::kAllocate:
    case TimelineKind::kDriverAlloc:
      erase(id);
      left_ = gone_;
      insert(record, id);
      step.came = &blocks_.back();
      break;
    case TimelineKind::kFree:
    case TimelineKind::kDriverFree:
      free(record, id);
      break;
    case TimelineKind::kBudget:
    case TimelineKind::kUse:
    case TimelineKind::kFailure:
      step.changed = false;
      return step;
    default:
      break;
  }
  take_statistics(record);
  settle();
  step.went = gone_;
  step.left = left_;
  return step;
}

}  // namespace weir::timeline
