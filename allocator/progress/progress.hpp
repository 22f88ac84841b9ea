#pragma once

/// @file
/// How the layers above learn how far a device has come, and their only way to wait for it. CPU
/// streams, CUDA events and, in tests, a fake implement it.
///
/// Rules for callers: hold no lock of ours across a call, except the scheduler's order lock around
/// `make_wait`, which makes an operation and its waits one step. Wait only for submitted work, so
/// that every wait ends.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>

namespace weir {

/// Names one stream. Ids are never reused.
struct StreamId {
  std::uint64_t value = 0;  ///< zero is no stream

  /// Compares in the order in which `next` gave them.
  friend constexpr auto operator<=>(StreamId, StreamId) noexcept = default;
  /// Returns a new id, the first of `count` consecutive ones. Thread-safe.
  [[nodiscard]] static StreamId next(std::uint64_t count = 1) noexcept;
};

/// A place in a stream's order, behind everything enqueued on `stream` before it was recorded. A
/// stream's sequences only grow, so a passed point covers all earlier ones.
struct Point {
  StreamId stream;             ///< the stream
  std::uint64_t sequence = 0;  ///< the place; zero is passed from the start

  /// Compares stream and sequence.
  friend constexpr bool operator==(Point, Point) noexcept = default;
};

/// How long a caller waits: until its time has come, a stop is requested, or something changed.
struct WaitLimit {
  std::stop_token stop{};  ///< a stop ends the wait
  /// the latest end of the wait
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();

  /// Ends the wait once it is not `seen`, where the wait polls; null: nothing does.
  const std::atomic<std::uint64_t>* watched = nullptr;
  std::uint64_t seen = 0;  ///< the value of `watched` before the wait

  /// Returns whether the wait is over.
  [[nodiscard]] bool over() const noexcept {
    constexpr auto kNever = std::chrono::steady_clock::time_point::max();
    return stop.stop_requested() || (watched != nullptr && watched->load() != seen) ||
           (until != kNever && std::chrono::steady_clock::now() >= until);
  }
};

/// How far a device has come, and every wait for it. Implementations are thread-safe.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  virtual ~Progress() = default;

  /// Returns the point after everything enqueued so far on `stream`. May throw if the device cannot
  /// record one now (a fault, a capture). The caller then keeps what it wanted to protect.
  [[nodiscard]] virtual Point record(StreamId stream) = 0;

  /// Returns the highest sequence of `stream` that the device has passed. Never decreases.
  [[nodiscard]] virtual std::uint64_t passed(StreamId stream) = 0;

  /// What is known at little cost of how far a stream has come.
  struct Known {
    std::uint64_t passed = 0;  ///< as of `passed(stream)`, or lower
    bool is_all = true;        ///< false: asking costs more than the stream's open points justify
  };
  /// Asks only if that is cheap: behind one stream may be very many.
  [[nodiscard]] virtual Known known_passed(StreamId stream) { return {.passed = passed(stream)}; }

  /// Blocks the thread until the device has passed `point`, and returns true. Returns false once
  /// the `limit` is over.
  [[nodiscard]] virtual bool wait(Point point, const WaitLimit& limit) = 0;

  /// Makes `waiter` wait for `point` on the device. Does not block the host.
  virtual void make_wait(StreamId waiter, Point point) = 0;

  /// Returns whether the device has passed `point`. Does not wait.
  [[nodiscard]] bool reached(Point point) { return passed(point.stream) >= point.sequence; }
};

}  // namespace weir

/// @cond
/// Allows StreamId as the key of an unordered container.
template <>
struct std::hash<weir::StreamId> {
  /// Returns the hash of its value.
  std::size_t operator()(weir::StreamId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
/// @endcond
