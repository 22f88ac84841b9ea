#pragma once

// How long `operations` equal operations take, from the times of their stages: the model of the
// chapter on asynchronous computation in Dive into Deep Learning (d2l.ai), and what it leaves out.
// Pure functions; all times in seconds. docs/dispatch.md has the reasons.

#include <algorithm>
#include <cstdint>

namespace weir {

/// Of one operation. t1, t2 and t3 are the chapter's names.
struct Stages {
  double submit = 0;  ///< t1: the frontend's, while the device has work, so that nobody is woken
  double submit_waking = 0;  ///< the same call when the device sleeps and must be woken
  double execute = 0;        ///< t2: the device's, in the operation itself
  double device = 0;         ///< the device's in all: with fetching the operation and ending it
  double back = 0;  ///< t3: what a wait for one operation takes beyond t1 + t2, wake-ups included
};

enum class SlowerSide : std::uint8_t { kDevice, kFrontend };

/// The chapter's condition: it expects the device to be the slower side, n*t2 > (n-1)*t1.
[[nodiscard]] constexpr SlowerSide slower_side(std::uint64_t operations, const Stages& s) noexcept {
  const auto n = static_cast<double>(operations);
  return n * s.execute > (n - 1) * s.submit ? SlowerSide::kDevice : SlowerSide::kFrontend;
}

/// Waiting for each: nothing overlaps. n*(t1 + t2 + t3)
[[nodiscard]] constexpr double predict_each(std::uint64_t operations, const Stages& s) noexcept {
  return static_cast<double>(operations) * (s.submit + s.execute + s.back);
}

/// Waiting once: the device is never without work after the first. t1 + n*t2 + t3
[[nodiscard]] constexpr double predict_once(std::uint64_t operations, const Stages& s) noexcept {
  return s.submit + static_cast<double>(operations) * s.execute + s.back;
}

/// Whether a device behind a slower frontend sleeps before the next call, which then wakes it: it
/// does when a call takes longer than the device's part of a round trip.
[[nodiscard]] constexpr bool runs_dry(const Stages& s) noexcept {
  return s.submit > s.execute + s.back;
}

/// Waiting once behind a slower frontend: only the last operation is left to wait for.
/// n*t1 + t2 + t3, where t1 is that of a call that wakes the device if each of them does.
[[nodiscard]] constexpr double predict_once_frontend(std::uint64_t operations,
                                                     const Stages& s) noexcept {
  const double call = runs_dry(s) ? std::max(s.submit, s.submit_waking) : s.submit;
  return static_cast<double>(operations) * call + s.execute + s.back;
}

/// Waiting once when the sides exclude each other: each operation is submitted and executed, and
/// neither overlaps with the other. n*(t1 + device) + t3
[[nodiscard]] constexpr double predict_once_in_turns(std::uint64_t operations,
                                                     const Stages& s) noexcept {
  return static_cast<double>(operations) * (s.submit + s.device) + s.back;
}

/// Whether one side is so much slower that the other does not slow it down further. Sides of about
/// one speed meet at the stream's queue with every operation.
[[nodiscard]] constexpr bool sides_apart(const Stages& s) noexcept {
  constexpr double kApart = 8;
  return std::max(s.submit, s.device) > kApart * std::min(s.submit, s.device);
}

}  // namespace weir
