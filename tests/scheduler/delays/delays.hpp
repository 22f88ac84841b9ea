#pragma once

// Delays at each lock, wait and notification of the program. Thread-safe.

#include <cstdint>

namespace weir::testing {

/// Delays every thread at random while it lives, for microseconds: most spin, some yield or sleep.
/// One at a time.
class Delays {
 public:
  explicit Delays(std::uint64_t seed);
  ~Delays();
  Delays(const Delays&) = delete;
  Delays& operator=(const Delays&) = delete;

  /// Returns how often threads were delayed so far, in the whole program.
  [[nodiscard]] static std::uint64_t count();
};

}  // namespace weir::testing
