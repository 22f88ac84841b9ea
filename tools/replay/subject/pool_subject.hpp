#pragma once

// One of our pools as a subject of replays: on an upstream that counts its calls, and a device that
// is a fixed number of operations behind the host.

#include <atomic>
#include <functional>
#include <memory>

#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/pool.hpp"
#include "allocator/progress/progress.hpp"
#include "tools/replay/subject/subject.hpp"

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
  [[nodiscard]] bool wait(Point point, const WaitLimit& limit) override;
  void make_wait(StreamId waiter, Point point) override;

 private:
  [[nodiscard]] std::uint64_t passed_now() const noexcept;

  const std::uint64_t lag_;
  std::atomic<std::uint64_t> now_{0};  ///< operations begun
  std::atomic<std::uint64_t> waited_for_{0};
  std::atomic<std::uint64_t> waits_{0};
};

/// Memory that came from the driver or went back to it.
struct DriverEvent {
  std::uint64_t address = 0;
  Bytes size;
  bool obtained = true;
};

struct DriverCalls {
  std::atomic<std::uint64_t> calls{0};         ///< also refused ones
  std::atomic<std::uint64_t> mapped_pages{0};  ///< pages mapped
  std::function<void(const DriverEvent&)> tell;
};

/// Forwards and counts every call. Making, mapping, unmapping and freeing a page count one each, as
/// they are separate driver calls.
class CountedUpstream final : public Upstream {
 public:
  explicit CountedUpstream(std::unique_ptr<Upstream> upstream);
  ~CountedUpstream() override;

  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return upstream_->capacity(); }
  [[nodiscard]] Bytes available() const override { return upstream_->available(); }
  [[nodiscard]] PageSource* pages() noexcept override;

  [[nodiscard]] const DriverCalls& counts() const noexcept { return counts_; }
  /// Sets the listener, which the calling thread of each event invokes. Call before the first event
  /// only.
  void tell(std::function<void(const DriverEvent&)> listener) {
    counts_.tell = std::move(listener);
  }

 private:
  class CountedPages;

  const std::unique_ptr<Upstream> upstream_;
  DriverCalls counts_;
  std::unique_ptr<CountedPages> pages_;
};

/// Makes an upstream of that capacity.
using MakeUpstream = std::function<std::unique_ptr<Upstream>(Bytes capacity)>;

class PoolSubject final : public Subject {
 public:
  /// `options.budget` applies to the upstream's capacity. The device lags by `lag` operations; each
  /// call of allocate, deallocate and record_use is one operation.
  PoolSubject(std::unique_ptr<Upstream> upstream, PoolOptions options, std::uint64_t lag);

  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream) override;
  void deallocate(void* pointer, Bytes bytes, StreamId stream) override;
  void record_use(void* pointer, StreamId stream) override;
  [[nodiscard]] Footprint footprint() const override;

  [[nodiscard]] const Pool& pool() const noexcept { return pool_; }
  /// The upstream's page size; 2 MiB if it has none.
  [[nodiscard]] Bytes page_size();
  /// See CountedUpstream::tell.
  void tell(std::function<void(const DriverEvent&)> listener) {
    upstream_.tell(std::move(listener));
  }

 private:
  ReplayProgress progress_;
  CountedUpstream upstream_;
  Pool pool_;
};

}  // namespace weir::replay
