#pragma once

// Tracks, record by record, memory that the driver gave to any caller, such as cuBLAS and NCCL,
// outside our pools.

#include <cstdint>
#include <unordered_map>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Returns whether a kDriverAlloc is of host memory. Everything else counts as device memory.
[[nodiscard]] constexpr bool is_of_host(const TimelineRecord& record) noexcept {
  const auto memory = static_cast<TimelineMemory>(record.detail);
  return memory == TimelineMemory::kPinned || memory == TimelineMemory::kPageable;
}

/// Bytes given out and not returned. A free without an allocation changes nothing. Sums are modulo
/// 2^64.
class DriverMemory {
 public:
  /// Adds a kDriverAlloc or a kDriverFree.
  void add(const TimelineRecord& record) {
    take(record.sequence);
    if (record.kind != TimelineKind::kDriverAlloc) return;
    blocks_[record.sequence] = record;
    sum(is_of_host(record)) += record.bytes;
  }
  [[nodiscard]] std::uint64_t device() const noexcept { return device_; }
  [[nodiscard]] std::uint64_t host() const noexcept { return host_; }
  /// Returns the live allocations by address.
  [[nodiscard]] const std::unordered_map<std::uint64_t, TimelineRecord>& blocks() const noexcept {
    return blocks_;
  }

 private:
  [[nodiscard]] std::uint64_t& sum(bool of_host) noexcept { return of_host ? host_ : device_; }
  void take(std::uint64_t address) {
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) return;
    sum(is_of_host(block->second)) -= block->second.bytes;
    blocks_.erase(block);
  }

  std::unordered_map<std::uint64_t, TimelineRecord> blocks_;
  std::uint64_t device_ = 0;
  std::uint64_t host_ = 0;
};

/// The driver's own pools, which serve cudaMallocAsync. Sums are modulo 2^64.
class DriverPools {
 public:
  /// Adds a kDriverPool, which has the pool's current size.
  void add(const TimelineRecord& record) {
    constexpr std::uint8_t kDestroyed = 2;  // CUPTI's number for a destroyed pool
    Pool& pool = pools_[record.sequence];
    used_ -= pool.used;
    reserved_ -= pool.reserved;
    if (record.detail == kDestroyed) {
      pools_.erase(record.sequence);
      return;
    }
    pool = {record.bytes, record.requested};
    used_ += pool.used;
    reserved_ += pool.reserved;
  }
  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_; }

 private:
  struct Pool {
    std::uint64_t used = 0;
    std::uint64_t reserved = 0;
  };
  std::unordered_map<std::uint64_t, Pool> pools_;  ///< by address
  std::uint64_t used_ = 0;
  std::uint64_t reserved_ = 0;
};

}  // namespace weir::timeline
