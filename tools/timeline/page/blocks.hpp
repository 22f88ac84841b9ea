#pragma once

// Tracks the live blocks of one pool from its records. For frees that await the device, a pool
// reports only the passed bytes; this assumes that frees pass in order.

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/timeline/model/counters.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// An allocated block. Name, site and kind are indices into the process's names.
struct Block {
  std::uint64_t id = 0;
  std::uint64_t begin = 0;  ///< in nanoseconds
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;
  std::uint32_t name = 0;
  std::uint32_t site = 0;
  std::uint32_t kind = 0;  ///< kind of its batch; 0: outside batches
  std::uint32_t batch = 0;
  bool from_before = false;  ///< allocated before the recording began
};

/// The kind of each batch, by its number.
using BatchKinds = std::unordered_map<std::uint32_t, std::uint32_t>;
[[nodiscard]] BatchKinds batch_kinds(const Process& process);

/// One process's memory of one kind: the subject of one picture.
struct PoolRecords {
  std::string name;
  std::uint16_t source = 0;
  bool host = false;                 ///< host memory
  bool driver = false;               ///< seen by a profiler, not a pool of ours
  std::vector<std::uint32_t> order;  ///< indices of its records, in the order of events
};
/// Returns device pools in order of their numbers, then host pools, then what a profiler saw of
/// device memory, of pinned memory and of the driver's own pools.
[[nodiscard]] std::vector<PoolRecords> pools_of(const Process& process);

/// Tracks the live blocks, record by record.
class LiveBlocks {
 public:
  LiveBlocks(const PoolRecords& pool, const BatchKinds& kinds) : pool_(&pool), kinds_(&kinds) {}

  /// The effect of one record.
  struct Step {
    std::uint64_t time = 0;
    bool changed = false;  ///< the held bytes or the pool's counts changed
    const Block* came = nullptr;
    std::span<const Block> went;  ///< no longer allocated
    /// No longer held: freed, and passed by the device. A part of a block has that part's bytes.
    std::span<const Block> left;
  };
  /// Applies a record. The result is valid until the next call. Times never go back: an
  /// out-of-order record takes the time of its predecessor.
  Step apply(const TimelineRecord& record);

  /// Unordered.
  [[nodiscard]] const std::vector<Block>& blocks() const noexcept { return blocks_; }
  /// The sum of their bytes, saturated.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t requested() const noexcept { return requested_; }
  [[nodiscard]] std::uint64_t allocated() const noexcept { return allocated_; }
  [[nodiscard]] std::uint64_t awaiting() const noexcept { return awaiting_; }
  [[nodiscard]] std::uint64_t reserved() const noexcept;
  /// The batch of the last record applied.
  [[nodiscard]] std::uint32_t batch() const noexcept { return batch_; }

 private:
  void clear();
  void insert(const TimelineRecord& record, std::uint64_t id);
  void erase(std::uint64_t id);
  void take_statistics(const TimelineRecord& record);
  void free(const TimelineRecord& record, std::uint64_t id);
  void settle();

  const PoolRecords* pool_;
  const BatchKinds* kinds_;
  std::unordered_map<std::uint64_t, std::uint32_t> where_;  ///< id to index in blocks_
  std::vector<Block> blocks_;
  std::vector<Block> gone_;    ///< of the last step
  std::vector<Block> left_;    ///< of the last step
  std::deque<Block> waiting_;  ///< freed, but not passed by the device
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t time_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t requested_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t awaiting_ = 0;
  std::uint64_t cached_ = 0;
  std::uint32_t batch_ = 0;
  DriverPools driver_pools_;
};

}  // namespace weir::timeline
