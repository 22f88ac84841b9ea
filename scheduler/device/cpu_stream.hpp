#pragma once

// A stream of the cpu device: a worker thread executes a queue of tasks and of waits for other
// streams' points, in order. Thread-safe.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>

#include "allocator/base/condition.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/ring.hpp"
#include "allocator/timeline/sink.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

class CpuStream final : public Stream {
 public:
  /// `source` is the device's number in timelines.
  explicit CpuStream(StreamRole role, std::uint16_t source = 0);
  /// Executes all queued work, then ends the thread.
  ~CpuStream() override;

  void copy(void* to, const void* from, Bytes size) override;

  /// Returns the sequence that is passed once the task is done.
  std::uint64_t enqueue(Task& task) { return push({.task = &task}); }
  /// Makes this stream wait until `other` passes `sequence`, which must already be enqueued there.
  void enqueue_wait(CpuStream& other, std::uint64_t sequence) {
    (void)push({.other = &other, .sequence = sequence});
  }

  /// Returns the entries enqueued so far: the sequence of a point recorded now. Lock-free, because
  /// every free calls it.
  [[nodiscard]] std::uint64_t enqueued() const noexcept {
    return enqueued_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t passed() const noexcept {
    return passed_.load(std::memory_order_acquire);
  }
  /// Returns true once `sequence` is passed, false if stopped first.
  [[nodiscard]] bool wait(std::uint64_t sequence, const std::stop_token& stop);
  [[nodiscard]] std::uint64_t waiting() const {
    const Lock lock(mutex_);
    return waiting_;
  }
  [[nodiscard]] std::chrono::nanoseconds busy() const noexcept {
    return std::chrono::nanoseconds(busy_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr std::uint64_t kNobody = UINT64_MAX;
  struct Entry {
    Task* task = nullptr;
    CpuStream* other = nullptr;  ///< if set, wait for `sequence` of it; no task
    std::uint64_t sequence = 0;
  };

  std::uint64_t push(Entry entry);
  void serve();
  void execute(const Entry& entry);
  void wait_for(CpuStream& other, std::uint64_t sequence);
  /// When a task began or ended, for the recorder.
  struct Moment;
  void note(TimelineSink* sink, const Task& task, const Moment& from,
            const Moment& to) const noexcept;

  mutable Mutex mutex_{LockRank::kStream};
  Ring<Entry> entries_ WEIR_GUARDED_BY(mutex_);  ///< not begun
  std::atomic<std::uint64_t> enqueued_{0};       ///< written under the lock
  /// The lowest sequence that a thread sleeps for; passing others wakes nobody. A wake-up costs the
  /// worker more than many an operation.
  std::uint64_t awaited_ WEIR_GUARDED_BY(mutex_) = kNobody;
  std::uint64_t waiting_ WEIR_GUARDED_BY(mutex_) = 0;
  bool closing_ WEIR_GUARDED_BY(mutex_) = false;
  bool asleep_ WEIR_GUARDED_BY(mutex_) = false;  ///< the worker waits for work
  Condition work_;                               ///< the worker sleeps here if the queue is empty
  Condition passes_;                             ///< hosts and other streams sleep here
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::int64_t> busy_{0};
  // Used by the worker alone:
  std::optional<std::chrono::steady_clock::time_point> last_end_;  ///< of a task
  std::chrono::nanoseconds starved_{};  ///< with nothing enqueued, since then
  const std::uint16_t source_;
  std::thread worker_;
};

}  // namespace weir
