#pragma once

// Ends the program with a report of who waits for what if nothing moves for too long: a failure,
// never a way out. A run that passes never waits for it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace weir::testing {

/// Says how long nothing has moved. Not thread-safe but for `note_moved`. No clock of its own.
class Stillness {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Stillness(std::chrono::nanoseconds longest) : longest_(longest) {}

  /// Call when something has come to its end.
  void note_moved() { moves_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns a report if nothing has moved for too long.
  [[nodiscard]] std::optional<std::string> look(Time now);

 private:
  const std::chrono::nanoseconds longest_;
  std::atomic<std::uint64_t> moves_{0};
  std::uint64_t seen_ = 0;
  std::optional<Time> since_;
};

/// Looks from a thread of its own while it lives. `more` adds to the report, and must not wait.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::nanoseconds longest, std::function<std::string()> more = {});
  void note_moved() { stillness_.note_moved(); }

 private:
  Stillness stillness_;
  const std::function<std::string()> more_;
  std::jthread looks_;
};

}  // namespace weir::testing
