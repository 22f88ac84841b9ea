#pragma once

/// @file
/// The completion seam: how the parts above learn how far a device has come, and the only way in
/// which they wait for it. CPU streams, CUDA events and, in tests, a fake implement it.
///
/// Rules for callers: no lock of ours is held across any call, but for the scheduler's order lock
/// around `make_wait`, which makes an operation and its waits one step. Only work that is already
/// submitted is ever waited for, so every wait ends.

#include <cstdint>
#include <functional>
#include <stop_token>

namespace weir {

/// Names one stream for ever: an id is never used again after its stream is gone.
struct StreamId {
  std::uint64_t value = 0;  ///< zero is no stream

  /// In the order in which `next` gave them.
  friend constexpr auto operator<=>(StreamId, StreamId) noexcept = default;
  /// A new id, never given before in this process; the first of `count` such in a row. Thread-safe.
  [[nodiscard]] static StreamId next(std::uint64_t count = 1) noexcept;
};

/// A place in a stream's order: everything enqueued on `stream` before it was recorded.
/// Sequences of one stream only grow, so a later point that is passed covers the earlier ones.
struct Point {
  StreamId stream;             ///< whose order it is a place in
  std::uint64_t sequence = 0;  ///< how far in it; zero is passed from the start

  /// The same place of the same stream.
  friend constexpr bool operator==(Point, Point) noexcept = default;
};

/// How far a device has come, and every wait for it. Implementations are thread-safe.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  virtual ~Progress() = default;

  /// The point after everything enqueued so far on `stream`. May throw when the device cannot
  /// record one now (a fault, a capture); the caller then keeps what it wanted to protect.
  [[nodiscard]] virtual Point record(StreamId stream) = 0;

  /// The highest sequence of `stream` that the device has passed. Never decreases.
  [[nodiscard]] virtual std::uint64_t passed(StreamId stream) = 0;

  /// Holds the calling thread until the device has passed `point`; true. With a stop request
  /// first: false.
  [[nodiscard]] virtual bool wait(Point point, std::stop_token stop) = 0;

  /// Makes `waiter` wait on the device for `point`; the host goes on.
  virtual void make_wait(StreamId waiter, Point point) = 0;

  /// Whether the device has passed `point`. Does not wait.
  [[nodiscard]] bool reached(Point point) { return passed(point.stream) >= point.sequence; }
};

}  // namespace weir

/// @cond
/// Lets a StreamId be the key of an unordered container.
template <>
struct std::hash<weir::StreamId> {
  /// The hash of its value.
  std::size_t operator()(weir::StreamId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
/// @endcond
