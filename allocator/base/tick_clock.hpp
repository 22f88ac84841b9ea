#pragma once

// The cheapest clock: the processor's tick counter if the kernel found it even and in step on all
// cores, else the monotonic clock.

#include <cstdint>

namespace weir {

/// Chooses its clock on construction. Thread-safe.
class TickClock {
 public:
  /// Measures the counter's rate for a millisecond.
  TickClock();

  /// Ticks since an arbitrary start. Never decreases by more than two cores disagree.
  [[nodiscard]] std::uint64_t now() const noexcept { return counter_ ? counter() : monotonic(); }
  /// The time of construction, in ticks.
  [[nodiscard]] std::uint64_t began() const noexcept { return began_; }
  /// Measured since construction.
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
