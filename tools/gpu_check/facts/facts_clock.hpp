#pragma once

// Measures the cost of calls.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "allocator/base/time_after.hpp"
#include "tools/program/median.hpp"

namespace weir::gpu_check {

using FactClock = std::chrono::steady_clock;

[[nodiscard]] inline std::string in_microseconds(double time) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1f us", time);
  return buffer.data();
}

[[nodiscard]] inline double microseconds_since(FactClock::time_point start) {
  return std::chrono::duration<double, std::micro>(FactClock::now() - start).count();
}

/// Measured times, shown to people as their median.
class Times {
 public:
  template <typename Call>
  void measure(const Call& call, std::size_t parts = 1) {
    const auto start = FactClock::now();
    call();
    times_.push_back(microseconds_since(start) / static_cast<double>(parts));
  }
  [[nodiscard]] std::string text() const {
    return times_.empty() ? "?" : in_microseconds(median(times_));
  }

 private:
  std::vector<double> times_;
};

/// How often to repeat a call to learn its cost, unless time runs out first.
inline constexpr std::size_t kRepetitions = 100000;
/// All facts together may take 20 s.
inline constexpr std::chrono::milliseconds kLongestRepetition{600};

/// Repeats `call` kRepetitions times or for `longest`. Returns how often.
template <typename Call>
[[nodiscard]] std::size_t repeat(const Call& call,
                                 std::chrono::nanoseconds longest = kLongestRepetition) {
  const auto end = time_after_now(longest);
  std::size_t done = 0;
  for (; done < kRepetitions && FactClock::now() < end; ++done) call();
  return done;
}

/// Repeats `ask`, which returns whether the answer is the expected one. Returns `COST us (COUNT)`.
template <typename Ask>
[[nodiscard]] std::string cost_of_asking(const Ask& ask,
                                         std::chrono::nanoseconds longest = kLongestRepetition) {
  bool as_expected = true;
  const auto start = FactClock::now();
  const std::size_t count = repeat([&] { as_expected = ask() && as_expected; }, longest);
  return in_microseconds(microseconds_since(start) / static_cast<double>(count)) + " (" +
         std::to_string(count) + (as_expected ? ")" : ", not all of them)");
}

}  // namespace weir::gpu_check
