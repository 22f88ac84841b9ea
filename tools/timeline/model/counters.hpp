#pragma once

// Makes the samples of counter tracks from records: enough to draw, few enough to open.

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "allocator/timeline/record.hpp"
#include "tools/timeline/model/driver_memory.hpp"
#include "tools/timeline/model/queued_time.hpp"

namespace weir::timeline {

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
  static constexpr std::size_t kGauges = 6;  ///< gauges of a pool whose highest value is kept
  using Gauges = std::array<std::uint64_t, kGauges>;
  /// One value over time.
  struct Series {
    std::optional<CounterSample> last;     ///< in the current window
    std::optional<CounterSample> highest;  ///< in the current window, if higher than all before
    std::uint64_t most = 0;
  };
  struct Pool {
    std::optional<CounterSample> last;
    std::uint64_t last_sequence = 0;
    Gauges most{};
    std::array<std::optional<CounterSample>, kGauges> highest;
    std::uint64_t budget = 0;
  };

  [[nodiscard]] static Gauges gauges(const CounterSample& sample);
  void add_statistics(const TimelineRecord& record, std::vector<CounterSample>& samples);
  void add_batch(const TimelineRecord& record, std::vector<CounterSample>& samples);
  void add_queued_time(std::vector<CounterSample>& samples);
  void add_target(const TimelineRecord& record, std::vector<CounterSample>& samples);
  void add_driver_memory(const TimelineRecord& record, std::vector<CounterSample>& samples);
  static void close_window(Pool& pool, std::vector<CounterSample>& samples);
  static void close_window(Series& series, std::vector<CounterSample>& samples);
  static void add_value(Series& series, const CounterSample& sample,
                        std::vector<CounterSample>& samples);

  std::unordered_map<std::uint16_t, Pool> pools_;
  Series batches_, time_, target_, driver_;
  QueuedTime queued_;
  std::vector<QueuedTime::Step> steps_;
  DriverMemory driver_memory_;
  std::unordered_set<std::uint32_t> closed_;         ///< queued batches
  std::unordered_set<std::uint32_t> settled_early_;  ///< their kClose may still arrive
};

}  // namespace weir::timeline
