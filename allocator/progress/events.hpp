#pragma once

/// @file
/// Events of a driver that are used again and again: making one takes longer than recording it. The
/// calls are a parameter: the CUDA runtime's (events_cuda.hpp), or the swap-in's table of the
/// driver's functions.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>

namespace weir {

/// The calls that a store of events makes. `Code{}` is success.
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

/// What the answer to a query says.
enum class EventState : std::uint8_t {
  kPassed,
  kNotPassed,
  kCaptured,  ///< the event is part of a capture, or a capture forbids the question
  kFailed,    ///< the device failed
};

/// The state behind a code of cudaEventQuery or cuEventQuery, which number their codes alike.
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

/// Makes events and keeps those that nobody uses. They change hands as nodes of lists, which
/// neither allocates nor fails. Not thread-safe.
template <EventCalls Calls>
class EventStore {
 public:
  using Code = typename Calls::Code;      ///< the driver's
  using Event = typename Calls::Event;    ///< the driver's
  using Stream = typename Calls::Stream;  ///< the driver's
  using Events = std::list<Event>;        ///< in use

  /// Makes none yet.
  explicit EventStore(Calls calls) noexcept : calls_(calls) {}
  /// Destroys none: an event may have ended with its context (see `keep`).
  ~EventStore() = default;
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;

  /// Records an event behind what is enqueued on `stream`, and appends it to `events`. Else returns
  /// why not. Throws std::bad_alloc. Changes nothing for its caller in both cases.
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

  /// What the driver says of `event` now.
  [[nodiscard]] Code query(Event event) const noexcept { return calls_.query(event); }
  /// Asks for the last of `events` first, and takes back each that is passed. Returns success once
  /// none is left; else what the driver said of the last.
  [[nodiscard]] Code take_passed(Events& events) noexcept {
    while (!events.empty()) {
      const Code code = query(events.back());
      if (code != Code{}) return code;
      free_.splice(free_.begin(), events, std::prev(events.end()));
    }
    return Code{};
  }

  /// Takes all of `events`, which may be recorded again.
  void give_back(Events& events) noexcept { free_.splice(free_.begin(), events); }
  /// Somebody else destroys `events` of its events.
  void give_away(std::size_t events) noexcept { made_ -= events; }
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
  /// How many events there are, used or not.
  [[nodiscard]] std::size_t size() const noexcept { return made_; }

 private:
  const Calls calls_;
  Events free_;
  std::size_t made_ = 0;
};

}  // namespace weir
