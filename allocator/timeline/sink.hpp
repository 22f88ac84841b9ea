#pragma once

/// @file
/// The seam of timelines: pools, schedulers and devices say what happens to the one sink that the
/// process has, if any. Without one each says so to nobody for the price of a look at a pointer.

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "allocator/timeline/record.hpp"

namespace weir {

/// Whoever records. Thread-safe, never throws, takes no lock that a caller may hold: it is called
/// under any of ours. Once installed it is never destroyed: a thread may be inside it at any time.
class TimelineSink {
 public:
  TimelineSink() = default;
  TimelineSink(const TimelineSink&) = delete;
  TimelineSink& operator=(const TimelineSink&) = delete;

  /// Keeps a record. Thread and, where zero, times, batch and site are filled in: the site and the
  /// batch from the thread's TimelineScope.
  virtual void write(const TimelineRecord& record) noexcept = 0;
  /// A number for a text, the same for equal texts; 0 for an empty one and where memory is short.
  [[nodiscard]] virtual std::uint32_t name(std::string_view text) noexcept = 0;
  /// The same for `file:line`. `file` must live as long as the program: __FILE__ does.
  [[nodiscard]] virtual std::uint32_t site(const char* file, int line) noexcept = 0;
  /// Now, in the clock that records are written in. Never zero.
  [[nodiscard]] virtual std::uint64_t now() const noexcept = 0;
  /// The time of a clock reading of std::chrono::steady_clock, in nanoseconds, in that clock.
  [[nodiscard]] virtual std::uint64_t at(std::int64_t steady_ns) const noexcept = 0;
  /// The program is about to hear that memory ran out. Keeps what led to it where people find it;
  /// returns the name of that file, or null. Called without a lock; may take long.
  [[nodiscard]] virtual const char* note_failure() noexcept = 0;
  /// Batch `number` of the process begins: it may begin or end what is recorded.
  virtual void note_batch(std::uint32_t number) noexcept = 0;

 protected:
  ~TimelineSink() = default;
};

/// A profiler that wants to know what a thread works for while it calls the device. Thread-safe,
/// never destroyed once installed.
class TimelineMarker {
 public:
  TimelineMarker() = default;
  TimelineMarker(const TimelineMarker&) = delete;
  TimelineMarker& operator=(const TimelineMarker&) = delete;

  /// What the calling thread starts on the device belongs to `batch`, and was submitted at `site`,
  /// until the next pop. Nests.
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

/// The sink that records now; null where nothing is recorded.
[[nodiscard]] inline TimelineSink* timeline_sink() noexcept {
  return detail::timeline_sink.load(std::memory_order_acquire);
}
/// Whoever wants to hear of batches, recording or not; null where nobody does.
[[nodiscard]] inline TimelineSink* timeline_batches() noexcept {
  return detail::timeline_batches.load(std::memory_order_acquire);
}

/// The profiler that gathers now; null where none does.
[[nodiscard]] inline TimelineMarker* timeline_marker() noexcept {
  return detail::timeline_marker.load(std::memory_order_acquire);
}

/// The time at which it was made, for a record of what took until it is written.
class TimelineSlice {
 public:
  /// Looks at the clock if somebody records.
  TimelineSlice() noexcept : sink_(timeline_sink()), begin_(sink_ != nullptr ? sink_->now() : 0) {}
  /// Who records, or null.
  [[nodiscard]] TimelineSink* sink() const noexcept { return sink_; }
  /// Writes `record` with this begin; it ends now. For nobody where nobody records.
  void write(TimelineRecord record) const noexcept {
    if (sink_ == nullptr) return;
    record.begin = begin_;
    sink_->write(record);
  }

 private:
  TimelineSink* sink_;
  std::uint64_t begin_;
};

/// What a thread works for.
struct TimelineWork {
  std::uint32_t batch = 0;     ///< 0: none
  int line = 0;                ///< of `file`
  const char* file = nullptr;  ///< null: not known
};

/// What the calling thread works for until the scope ends, for records that do not say.
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

  /// Of the calling thread.
  [[nodiscard]] static TimelineWork current() noexcept { return of_thread; }
  /// Sets it until the next call, for work that no scope of a program holds; returns what it was.
  static TimelineWork exchange(const TimelineWork& work) noexcept {
    return std::exchange(of_thread, work);
  }

 private:
  static inline constinit thread_local TimelineWork of_thread{};
  const TimelineWork outer_;
  TimelineMarker* const marker_;
};

}  // namespace weir
