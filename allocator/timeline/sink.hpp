#pragma once

// Pools, schedulers and devices report events to the process's only sink. Without a sink, a report
// costs one load of a pointer.

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "allocator/timeline/record.hpp"

namespace weir {

/// Thread-safe. Never throws. Callers may hold any of our locks, so it takes none of them. Never
/// destroyed once installed: a thread may be in it.
class TimelineSink {
 public:
  TimelineSink() = default;
  TimelineSink(const TimelineSink&) = delete;
  TimelineSink& operator=(const TimelineSink&) = delete;

  /// Keeps a record. Fills in the thread, and times, batch and site if zero: batch and site from
  /// the thread's TimelineScope.
  virtual void write(const TimelineRecord& record) noexcept = 0;
  /// Returns the number of a text, the same for equal texts; 0: empty, or no memory.
  [[nodiscard]] virtual std::uint32_t name(std::string_view text) noexcept = 0;
  /// As `name`, for `file:line`. `file` must live as long as the program (__FILE__).
  [[nodiscard]] virtual std::uint32_t site(const char* file, int line) noexcept = 0;
  /// Returns the time in the records' clock; never zero.
  [[nodiscard]] virtual std::uint64_t now() const noexcept = 0;
  /// Converts a reading of std::chrono::steady_clock, in nanoseconds, to that clock.
  [[nodiscard]] virtual std::uint64_t at(std::int64_t steady_ns) const noexcept = 0;
  /// Writes the events before an out-of-memory error to a file. Returns the command that makes a
  /// page of it, or null. Called without a lock; may take long.
  [[nodiscard]] virtual const char* note_failure() noexcept = 0;
  /// Batch `number` of the process begins: this may start or stop the recording.
  virtual void note_batch(std::uint32_t number) noexcept = 0;

 protected:
  ~TimelineSink() = default;
};

/// A profiler that attributes device calls to batches. Thread-safe. Never destroyed once installed.
class TimelineMarker {
 public:
  TimelineMarker() = default;
  TimelineMarker(const TimelineMarker&) = delete;
  TimelineMarker& operator=(const TimelineMarker&) = delete;

  /// Attributes the calling thread's device work to `batch`, submitted at `site`, until the next
  /// pop. Nests.
  virtual void push(std::uint32_t batch, std::uint32_t site) noexcept = 0;
  virtual void pop() noexcept = 0;

 protected:
  ~TimelineMarker() = default;
};

namespace detail {
inline constinit std::atomic<TimelineSink*> timeline_sink{nullptr};
inline constinit std::atomic<TimelineSink*> timeline_batches{nullptr};
inline constinit std::atomic<TimelineMarker*> timeline_marker{nullptr};
}  // namespace detail

/// Returns the recording sink; null if there is none.
[[nodiscard]] inline TimelineSink* timeline_sink() noexcept {
  return detail::timeline_sink.load(std::memory_order_acquire);
}
/// Returns the sink that receives batches, recording or not; null if there is none.
[[nodiscard]] inline TimelineSink* timeline_batches() noexcept {
  return detail::timeline_batches.load(std::memory_order_acquire);
}

/// Returns the active profiler; null if there is none.
[[nodiscard]] inline TimelineMarker* timeline_marker() noexcept {
  return detail::timeline_marker.load(std::memory_order_acquire);
}

/// Measures from construction to `write`.
class TimelineSlice {
 public:
  TimelineSlice() noexcept : sink_(timeline_sink()), begin_(sink_ != nullptr ? sink_->now() : 0) {}
  [[nodiscard]] TimelineSink* sink() const noexcept { return sink_; }
  /// Writes `record`, from construction until now.
  void write(TimelineRecord record) const noexcept {
    if (sink_ == nullptr) return;
    record.begin = begin_;
    sink_->write(record);
  }

 private:
  TimelineSink* sink_;
  std::uint64_t begin_;
};

struct TimelineWork {
  std::uint32_t batch = 0;     ///< 0: none
  int line = 0;                ///< of `file`
  const char* file = nullptr;  ///< null: unknown
};

/// Sets the calling thread's work within a scope, for records without batch or site.
class TimelineScope {
 public:
  TimelineScope(std::uint32_t batch, const char* file, int line) noexcept
      : outer_(exchange({batch, line, file})), marker_(timeline_marker()) {
    if (marker_ == nullptr) return;
    TimelineSink* const sink = timeline_sink();
    marker_->push(batch, sink != nullptr ? sink->site(file, line) : 0);
  }
  ~TimelineScope() {
    if (marker_ != nullptr) marker_->pop();
    (void)exchange(outer_);
  }
  TimelineScope(const TimelineScope&) = delete;
  TimelineScope& operator=(const TimelineScope&) = delete;

  [[nodiscard]] static TimelineWork current() noexcept { return of_thread; }
  /// Sets it until the next call, for work outside scopes; returns the work before.
  static TimelineWork exchange(const TimelineWork& work) noexcept {
    return std::exchange(of_thread, work);
  }

 private:
  static inline constinit thread_local TimelineWork of_thread{};
  const TimelineWork outer_;
  TimelineMarker* const marker_;
};

}  // namespace weir
