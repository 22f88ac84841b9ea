#pragma once

// Delays at each lock, wait and notification of the program, and what each thread waits for.
// Thread-safe.

#include <chrono>
#include <cstdint>
#include <string>

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

/// Names the calling thread in reports while it lives. `name` must outlive it.
class NamedThread {
 public:
  explicit NamedThread(const char* name);
  ~NamedThread();
  NamedThread(const NamedThread&) = delete;
  NamedThread& operator=(const NamedThread&) = delete;

  /// Says what the calling thread does from now on: a string literal.
  static void doing(const char* what);
};

/// Returns a line for each thread that has met a lock: its name, what it does, what it waits for
/// and for how long. At most 64 threads.
[[nodiscard]] std::string who_waits(std::chrono::steady_clock::time_point now);

}  // namespace weir::testing
