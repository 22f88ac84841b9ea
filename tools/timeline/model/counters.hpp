#pragma once

// Makes the samples of counter tracks from records: enough to draw, few enough to open.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

// Tracks, record by record, memory that the driver gave to any caller, such as cuBLAS and NCCL,
// outside our pools.

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

// Computes over time the device time that a process has submitted and the device has not completed.

/// Matches submissions with device work: an operation's submission with its execution, and a driver
/// call with the kernels, copies and sets that it began. Each work counts with its length, from the
/// end of its submission to its own end. Work with an unknown submission counts from its begin. Not
/// thread-safe.
class QueuedTime {
 public:
  /// From `time` on, `value` nanoseconds are queued.
  struct Step {
    std::uint64_t time = 0;
    std::uint64_t value = 0;
  };

  /// Appends the steps that are known after `record`, by time. Work that is reported much later
  /// than its neighbours counts from the last step on.
  void add(const TimelineRecord& record, std::vector<Step>& steps);
  /// Appends the rest. Do not add anything afterwards.
  void finish(std::vector<Step>& steps);

 private:
  struct Work {
    std::uint64_t from = 0, to = 0;
  };
  /// An operation with only one of the two records so far.
  struct Half {
    std::optional<std::uint64_t> submitted;
    Work work;
  };
  using Change = std::pair<std::uint64_t, std::int64_t>;  ///< time and amount

  void add_operation(const TimelineRecord& record);
  void add_call(const TimelineRecord& record);
  void add_work(const TimelineRecord& record);
  void count_work(std::uint64_t submitted, const Work& work);
  void count(std::uint64_t submitted, const Work& work);
  void give_up_waiting();
  [[nodiscard]] std::uint64_t known_until() const;
  [[nodiscard]] std::uint64_t earliest_submission(std::uint64_t from) const;
  void apply_until(std::uint64_t time, std::vector<Step>& steps);

  std::map<std::uint64_t, Half> halves_;          ///< by operation
  std::map<std::uint64_t, std::uint64_t> calls_;  ///< end of each call, by correlation id
  std::multimap<std::uint64_t, Work> waiting_;    ///< works waiting for their calls, by correlation
                                                  ///< id
  bool any_work_ = false;                         ///< a profiler reports device work
  std::uint64_t latest_ = 0;                      ///< latest begin of work that a profiler reported
  std::uint64_t longest_wait_ = 0;                ///< from a work's submission to its begin

  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::int64_t queued_ = 0;
  std::uint64_t told_until_ = 0;
};

/// One value of one counter, or of the five of a pool.
struct CounterSample {
  enum class Of : std::uint8_t {
    kPool,           ///< of pool `source`: the five below
    kQueuedBatches,  ///< closed but not settled batches: value
    kQueuedTime,     ///< nanoseconds of device time, submitted but not done: value
    kTarget,         ///< nanoseconds, the run-ahead target of the last admitted batch: value
    kDriverMemory,   ///< bytes of device memory given out by the driver, as a profiler saw: value
  };
  Of of = Of::kPool;
  std::uint16_t source = 0;  ///< the pool of kPool; 0: the process
  std::uint64_t time = 0;
  std::uint64_t value = 0;
  std::uint64_t allocated = 0;
  std::uint64_t awaiting = 0;
  std::uint64_t cached = 0;
  std::uint64_t budget = 0;

  [[nodiscard]] std::uint64_t reserved() const noexcept { return allocated + awaiting + cached; }
  friend bool operator==(const CounterSample&, const CounterSample&) = default;
};

/// A counter of one value.
struct ValueCounter {
  enum class Unit : std::uint8_t { kTime, kCount, kBytes };
  std::string_view name;
  Unit unit;
};
/// In the order of CounterSample::Of after kPool.
inline constexpr std::array<ValueCounter, 4> kValueCounters{
    {{"queued batches", ValueCounter::Unit::kCount},
     {"queued device time", ValueCounter::Unit::kTime},
     {"run-ahead target", ValueCounter::Unit::kTime},
     {"driver memory", ValueCounter::Unit::kBytes}}};

/// The length of a time window. A window yields its last value, and its highest value if that
/// exceeds all earlier ones.
inline constexpr std::uint64_t kCounterWindow = 100'000;  // ns

/// Makes the samples of one process. Always includes the highest value of each of allocated,
/// awaiting, cached, reserved and budget, and of allocated plus awaiting. Not thread-safe.
class Counters {
 public:
  /// Appends the samples that are ready. Their times may go back a little.
  void add(const TimelineRecord& record, std::vector<CounterSample>& samples);
  /// Appends the rest. Do not add anything afterwards.
  void finish(std::vector<CounterSample>& samples);

 private:
  static constexpr std::size_t kGauges = 7;  ///< whose highest value is kept
  using Gauges = std::array<std::uint64_t, kGauges>;
  /// The samples of a pool, or of one value, over time.
  struct Series {
    std::optional<CounterSample> last;  ///< in the current window
    std::uint64_t last_sequence = 0;
    Gauges most{};
    /// In the current window, if higher than all before.
    std::array<std::optional<CounterSample>, kGauges> highest;
    std::uint64_t budget = 0;
  };

  [[nodiscard]] static Gauges gauges(const CounterSample& sample);
  void add_statistics(const TimelineRecord& record, std::vector<CounterSample>& samples);
  void add_batch(const TimelineRecord& record, std::vector<CounterSample>& samples);
  void add_queued_time(std::vector<CounterSample>& samples);
  void add_target(const TimelineRecord& record, std::vector<CounterSample>& samples);
  void add_driver_memory(const TimelineRecord& record, std::vector<CounterSample>& samples);
  static void close_window(Series& series, std::vector<CounterSample>& samples);
  static void add_sample(Series& series, const CounterSample& sample, std::uint64_t sequence,
                         std::vector<CounterSample>& samples);

  std::unordered_map<std::uint16_t, Series> pools_;
  Series batches_, time_, target_, driver_;
  QueuedTime queued_;
  std::vector<QueuedTime::Step> steps_;
  DriverMemory driver_memory_;
  std::unordered_set<std::uint32_t> closed_;         ///< queued batches
  std::unordered_set<std::uint32_t> settled_early_;  ///< their kClose may still arrive
};

}  // namespace weir::timeline
