#pragma once

// Simulates a device that is a fixed number of operations behind the host.

#include <atomic>

#include "allocator/progress/progress.hpp"

namespace weir::replay {

/// A point recorded during operation i is passed when operation i + lag begins, on every stream.
/// All streams advance together, so waits between streams take no extra time. A wait on the host
/// advances the device to the point, so it always ends; it is counted.
class ReplayProgress final : public Progress {
 public:
  explicit ReplayProgress(std::uint64_t lag) noexcept : lag_(lag) {}

  /// Begins the next operation.
  void begin_operation() noexcept { now_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns the number of host waits for points that the device had not passed.
  [[nodiscard]] std::uint64_t waits() const noexcept { return waits_.load(); }

  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  [[nodiscard]] bool wait(Point point, std::stop_token stop) override;
  void make_wait(StreamId waiter, Point point) override;

 private:
  [[nodiscard]] std::uint64_t passed_now() const noexcept;

  const std::uint64_t lag_;
  std::atomic<std::uint64_t> now_{0};  ///< operations begun
  std::atomic<std::uint64_t> waited_for_{0};
  std::atomic<std::uint64_t> waits_{0};
};

}  // namespace weir::replay
