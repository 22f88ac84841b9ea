#pragma once

// The cpu device: host memory with a capacity, and four streams, each a worker thread. To the
// layers above it behaves like a GPU: work runs late, in stream order, and frees do not wait.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/condition.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/timeline/sink.hpp"
#include "allocator/timeline/source.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// A queue in one piece of memory that doubles when full: at its full length it allocates nothing.
/// Not thread-safe.
template <typename T>
class Ring {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - first_; }
  /// The `i`-th from the front, unchecked.
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return at(first_ + i); }
  [[nodiscard]] T& front() noexcept { return at(first_); }
  [[nodiscard]] T& back() noexcept { return at(end_ - 1); }

  /// Strong guarantee: throws only for lack of memory.
  void push_back(T value) {
    reserve_one();
    at(end_++) = std::move(value);
  }
  /// The next push_back does not throw.
  void reserve_one() { reserve(1); }
  /// The next `more` push_backs do not throw.
  void reserve(std::size_t more) {
    while (items_.size() - size() < more) grow();
  }
  T pop_front() noexcept { return std::move(at(first_++)); }

 private:
  [[nodiscard]] T& at(std::size_t place) noexcept { return items_[place & (items_.size() - 1)]; }

  void grow() {
    std::vector<T> larger(items_.size() * 2);
    for (std::size_t i = first_; i != end_; ++i) larger[i & (larger.size() - 1)] = std::move(at(i));
    items_ = std::move(larger);
  }

  std::vector<T> items_ = std::vector<T>(64);  ///< always a power of two
  std::size_t first_ = 0;                      ///< this and end_ only grow
  std::size_t end_ = 0;
};

/// A stream of the cpu device: a worker thread executes a queue of tasks and of waits for other
/// streams' points, in order. Thread-safe.
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
  [[nodiscard]] bool wait(std::uint64_t sequence, const WaitLimit& limit);
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

/// A quarter of the machine's memory, for batches on their way to the device.
[[nodiscard]] Bytes default_host_memory();

class CpuDevice final : public DeviceBackend, private Progress, private TimelineSource {
 public:
  /// Takes memory from `upstream` if given (tests), otherwise `memory` bytes of the host.
  explicit CpuDevice(Bytes memory, std::unique_ptr<Upstream> upstream = nullptr);
  /// Executes all queued work first.
  ~CpuDevice() override;

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] Upstream& upstream() override { return *upstream_; }
  [[nodiscard]] Upstream& host_upstream() override { return host_; }
  [[nodiscard]] Progress& progress() override { return *this; }
  [[nodiscard]] StreamId stream(StreamRole role) const override;
  std::uint64_t enqueue(StreamRole role, Task& task) override;
  [[nodiscard]] bool runs_in_enqueue() const noexcept override { return false; }
  void drain() noexcept override;
  [[nodiscard]] bool copies_late(const void* /*host*/) const override { return true; }
  [[nodiscard]] std::chrono::nanoseconds busy(StreamRole role) const override;
  [[nodiscard]] std::uint16_t timeline_source() const noexcept override { return number(); }

 private:
  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  [[nodiscard]] bool wait(Point point, const WaitLimit& limit) override;
  void make_wait(StreamId waiter, Point point) override;

  // For timelines and live views.
  void add_figures(LiveFigures& figures) const override;
  void record_live(TimelineSink& sink) override;

  [[nodiscard]] CpuStream& find(StreamId stream) const;

  const std::unique_ptr<Upstream> upstream_;
  MappedUpstream host_{default_host_memory()};
  std::array<std::unique_ptr<CpuStream>, kStreamRoles> streams_;
  std::array<StreamId, kStreamRoles> ids_{};  ///< the streams' ids, contiguous
};

/// Half of the machine's memory: the host side needs some too.
[[nodiscard]] Bytes default_cpu_memory();
[[nodiscard]] Bytes machine_memory();

}  // namespace weir
