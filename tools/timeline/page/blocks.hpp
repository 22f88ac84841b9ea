#pragma once

// The blocks of one pool that are alive, as its records tell. Of frees that await the device a pool
// tells only the bytes that were passed: they are taken to be passed in the order of the frees.

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/timeline/model/driver_memory.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// A block that is handed out. Name, site and kind are numbers of the process's names.
struct Block {
  std::uint64_t id = 0;
  std::uint64_t begin = 0;  ///< in nanoseconds
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;
  std::uint32_t name = 0;
  std::uint32_t site = 0;
  std::uint32_t kind = 0;  ///< of its batch; 0: outside of batches
  std::uint32_t batch = 0;
  bool from_before = false;  ///< it was there when the recording began
};

/// The kind of each batch, by its number.
using BatchKinds = std::unordered_map<std::uint32_t, std::uint32_t>;
[[nodiscard]] BatchKinds batch_kinds(const Process& process);

/// Memory of one kind in one process: what one picture shows.
struct PoolRecords {
  std::string name;
  std::uint16_t source = 0;
  bool host = false;                 ///< memory of the host
  bool driver = false;               ///< what a profiler saw, rather than a pool of ours
  std::vector<std::uint32_t> order;  ///< indices of its records, as they happened
};
/// Pools of the device first, in order of their numbers; then those of the host, then what a
/// profiler saw of device memory, of pinned memory and of the driver's own pools.
[[nodiscard]] std::vector<PoolRecords> pools_of(const Process& process);

/// What was alive, followed record by record.
class LiveBlocks {
 public:
  LiveBlocks(const PoolRecords& pool, const BatchKinds& kinds) : pool_(&pool), kinds_(&kinds) {}

  /// What one record did.
  struct Step {
    std::uint64_t time = 0;
    bool changed = false;  ///< bytes or books
    const Block* came = nullptr;
    std::span<const Block> went;  ///< no longer handed out
    /// No longer held: freed, and passed by the device. A part of a block has the bytes of the
    /// part.
    std::span<const Block> left;
  };
  /// The step is valid until the next call. Times never go back: a record that is out of order
  /// happens with the one before it.
  Step apply(const TimelineRecord& record);

  /// In no order.
  [[nodiscard]] const std::vector<Block>& blocks() const noexcept { return blocks_; }
  /// Their sums, saturated.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t requested() const noexcept { return requested_; }
  [[nodiscard]] std::uint64_t allocated() const noexcept { return allocated_; }
  [[nodiscard]] std::uint64_t awaiting() const noexcept { return awaiting_; }
  [[nodiscard]] std::uint64_t reserved() const noexcept;
  /// Of the record that was applied last.
  [[nodiscard]] std::uint32_t batch() const noexcept { return batch_; }

 private:
  void clear();
  void insert(const TimelineRecord& record, std::uint64_t id);
  void erase(std::uint64_t id);
  void take_books(const TimelineRecord& record);
  void free(const TimelineRecord& record, std::uint64_t id);
  void settle();

  const PoolRecords* pool_;
  const BatchKinds* kinds_;
  std::unordered_map<std::uint64_t, std::uint32_t> where_;  ///< id to index in blocks_
  std::vector<Block> blocks_;
  std::vector<Block> gone_;    ///< of the last step
  std::vector<Block> left_;    ///< of the last step
  std::deque<Block> waiting_;  ///< freed, and not passed by the device
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
