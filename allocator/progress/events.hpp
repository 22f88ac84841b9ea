#pragma once

// Reuses events of a driver, since making one takes longer than recording it. The calls are the
// CUDA runtime's (events_cuda.hpp) or the swap-in's table of driver functions.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>

#include "allocator/base/mutex.hpp"

namespace weir {

/// The calls of an event store. `Code{}` is success.
template <typename Calls>
concept EventCalls = requires(const Calls& calls, typename Calls::Event& event,
                              typename Calls::Stream stream) {
  { calls.create(event) }
  noexcept->std::same_as<typename Calls::Code>;
  { calls.record(event, stream) }
  noexcept->std::same_as<typename Calls::Code>;
  { calls.query(event) }
  noexcept->std::same_as<typename Calls::Code>;
  { calls.destroy(event) }
  noexcept->std::same_as<typename Calls::Code>;
};

/// The result of a query.
enum class EventState : std::uint8_t {
  kPassed,
  kNotPassed,
  kCaptured,  ///< the event is part of a capture, or a capture forbids the query
  kFailed,    ///< the device failed
};

/// Returns the state for a code of cudaEventQuery or cuEventQuery, which share numbers.
template <typename Code>
[[nodiscard]] constexpr EventState event_state(Code code) noexcept {
  constexpr int kNotReady = 600;
  constexpr int kFirstOfCaptures = 900;
  constexpr int kLastOfCaptures = 908;
  const int number = static_cast<int>(code);
  if (number == 0) return EventState::kPassed;
  if (number == kNotReady) return EventState::kNotPassed;
  const bool captured = kFirstOfCaptures <= number && number <= kLastOfCaptures;
  return captured ? EventState::kCaptured : EventState::kFailed;
}

/// Makes events and keeps unused ones. They move as list nodes, which neither allocates nor fails.
/// Not thread-safe.
template <EventCalls Calls>
class EventStore {
 public:
  using Code = typename Calls::Code;      ///< the driver's
  using Event = typename Calls::Event;    ///< the driver's
  using Stream = typename Calls::Stream;  ///< the driver's
  using Events = std::list<Event>;        ///< events in use

  /// Makes no event yet.
  explicit EventStore(Calls calls) noexcept : calls_(calls) {}
  /// Destroys no event: it may have ended with its context (see `keep`).
  ~EventStore() = default;
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;

  /// Records an event behind the work on `stream` and appends it to `events`. On failure returns
  /// the driver's code or throws std::bad_alloc, with `events` unchanged.
  [[nodiscard]] Code record(Events& events, Stream stream) {
    if (free_.empty()) {
      Events made(1);
      const Code code = calls_.create(made.front());
      if (code != Code{}) return code;
      free_.splice(free_.begin(), made);
      ++made_;
    }
    const Code code = calls_.record(free_.front(), stream);
    if (code == Code{}) events.splice(events.end(), free_, free_.begin());
    return code;
  }

  /// Returns the driver's answer about `event`.
  [[nodiscard]] Code query(Event event) const noexcept { return calls_.query(event); }
  /// Queries `events` from the last one and takes back each that is passed. Returns success once
  /// none is left, otherwise the driver's code for the last.
  [[nodiscard]] Code take_passed(Events& events) noexcept {
    while (!events.empty()) {
      const Code code = query(events.back());
      if (code != Code{}) return code;
      free_.splice(free_.begin(), events, std::prev(events.end()));
    }
    return Code{};
  }

  /// Takes back all of `events` for reuse.
  void give_back(Events& events) noexcept { free_.splice(free_.begin(), events); }
  /// Stops counting `events` events, which another owner destroys.
  void disown(std::size_t events) noexcept { made_ -= events; }
  /// Destroys unused events until at most `most` are left. Returns the first error.
  Code keep(std::size_t most) noexcept {
    Code first{};
    while (free_.size() > most) {
      const Code code = calls_.destroy(free_.back());
      if (first == Code{}) first = code;
      free_.pop_back();
      --made_;
    }
    return first;
  }
  /// Returns the number of events, used or not.
  [[nodiscard]] std::size_t size() const noexcept { return made_; }

 private:
  const Calls calls_;
  Events free_;
  std::size_t made_ = 0;
};

// The points of one stream, and the fences that the device has not passed.

/// A point is the number of the stream's next fence, so it needs no driver call. The fence is
/// recorded later and may cover more than needed. `Fence` has a `sequence` and its owner's data.
/// Fences move as list nodes, which neither allocates nor fails. The owner's lock guards the queue.
template <typename Fence>
class FenceQueue {
 public:
  using Fences = std::list<Fence>;  ///< fences outside the queue

  /// Returns a new point's sequence.
  std::uint64_t add_point() noexcept {
    ++points_;
    return next_;
  }
  /// Returns how many points wait for the next fence.
  [[nodiscard]] std::uint32_t points() const noexcept { return points_; }
  /// Returns the sequence of the next fence.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// Returns the highest sequence of a point or fence.
  [[nodiscard]] std::uint64_t last() const noexcept { return points_ != 0 ? next_ : next_ - 1; }
  /// Returns the sequence of the last passed fence.
  [[nodiscard]] std::uint64_t passed() const noexcept { return passed_; }
  /// Returns whether no point or fence waits for the device.
  [[nodiscard]] bool idle() const noexcept { return fences_.empty() && points_ == 0; }

  /// Moves the only fence of `made` to the end of the queue. It covers the points so far, unless
  /// `skip` gave out its number before.
  void push(Fences& made, std::uint64_t sequence) noexcept {
    made.front().sequence = sequence;
    fences_.splice(fences_.end(), made);
  }
  void push(Fences& made) noexcept { push(made, skip()); }
  /// Ends the points of the next fence without a fence. Returns its number.
  std::uint64_t skip() noexcept {
    points_ = 0;
    return next_++;
  }

  /// Moves the oldest fence to the front of `to` if `is_passed(fence)`. Returns whether it did.
  /// Clang cannot see that the lock, which `is_passed` needs too, is held.
  template <typename IsPassed>
  bool take_passed(Fences& to, const IsPassed& is_passed) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    if (fences_.empty() || !is_passed(fences_.front())) return false;
    passed_ = fences_.front().sequence;
    to.splice(to.begin(), fences_, fences_.begin());
    return true;
  }

  /// Recorded and not passed, in order.
  [[nodiscard]] Fences& fences() noexcept { return fences_; }
  [[nodiscard]] const Fences& fences() const noexcept { return fences_; }

 private:
  std::uint64_t next_ = 1;
  std::uint64_t passed_ = 0;
  std::uint32_t points_ = 0;
  Fences fences_;
};

}  // namespace weir
