#pragma once

/// @file
/// The cheapest clock there is: the processor's counter of ticks, where the kernel has found that
/// it counts evenly and alike on all cores, and the monotonic clock elsewhere.

#include <cstdint>

namespace weir {

/// One clock of the two, chosen when it is made. Thread-safe.
class TickClock {
 public:
  /// Takes a millisecond to learn the rate of the counter.
  TickClock();

  /// Ticks, from a beginning of the clock's own. Never decreases by more than what two cores of one
  /// machine disagree by.
  [[nodiscard]] std::uint64_t now() const noexcept { return counter_ ? counter() : monotonic(); }
  /// When the clock was made, in its ticks.
  [[nodiscard]] std::uint64_t began() const noexcept { return began_; }
  /// Nanoseconds of a tick, measured from when the clock was made until now.
  [[nodiscard]] double ns_per_tick() const noexcept;

 private:
  [[nodiscard]] static std::uint64_t counter() noexcept;
  [[nodiscard]] static std::uint64_t monotonic() noexcept;

  bool counter_;
  std::uint64_t began_;
  std::uint64_t began_ns_;
};

#if defined(__x86_64__)
inline std::uint64_t TickClock::counter() noexcept { return __builtin_ia32_rdtsc(); }
#else
inline std::uint64_t TickClock::counter() noexcept { return monotonic(); }
#endif

}  // namespace weir
