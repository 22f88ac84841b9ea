#pragma once

// Predicts how long `operations` equal operations take, from the times of their stages: the model
// of the chapter on asynchronous computation in Dive into Deep Learning (d2l.ai), and what it
// omits. Pure; times in seconds. Reasons: docs/dispatch.md.

#include <algorithm>
#include <cstdint>

namespace weir {

/// The stages of one operation. t1, t2 and t3 are the chapter's names.
struct Stages {
  double submit = 0;  ///< t1: the frontend's call while the device has work, so that it wakes
                      ///< nobody
  double submit_waking = 0;  ///< the same call while the device sleeps and must be woken
  double execute = 0;        ///< t2: the device, in the operation itself
  double device = 0;         ///< the device in all, with fetching and ending the operation
  double back = 0;  ///< t3: the rest of a wait for one operation beyond t1 + t2, with wake-ups
};

enum class SlowerSide : std::uint8_t { kDevice, kFrontend };

/// The chapter's condition: the device is slower if n*t2 > (n-1)*t1.
[[nodiscard]] constexpr SlowerSide slower_side(std::uint64_t operations, const Stages& s) noexcept {
  const auto n = static_cast<double>(operations);
  return n * s.execute > (n - 1) * s.submit ? SlowerSide::kDevice : SlowerSide::kFrontend;
}

/// One wait per operation: nothing overlaps. n*(t1 + t2 + t3)
[[nodiscard]] constexpr double predict_each(std::uint64_t operations, const Stages& s) noexcept {
  return static_cast<double>(operations) * (s.submit + s.execute + s.back);
}

/// One wait in all: after the first operation the device always has work. t1 + n*t2 + t3
[[nodiscard]] constexpr double predict_once(std::uint64_t operations, const Stages& s) noexcept {
  return s.submit + static_cast<double>(operations) * s.execute + s.back;
}

/// Returns whether a device behind a slower frontend sleeps before the next call, which then wakes
/// it: a call takes longer than the device's part of a round trip.
[[nodiscard]] constexpr bool runs_dry(const Stages& s) noexcept {
  return s.submit > s.execute + s.back;
}

/// One wait in all behind a slower frontend: at the end only the last operation is open. n*t1 + t2
/// + t3, with the t1 of a waking call if each call wakes the device.
[[nodiscard]] constexpr double predict_once_frontend(std::uint64_t operations,
                                                     const Stages& s) noexcept {
  const double call = runs_dry(s) ? std::max(s.submit, s.submit_waking) : s.submit;
  return static_cast<double>(operations) * call + s.execute + s.back;
}

/// One wait in all if the sides exclude each other: submitting and executing never overlap. n*(t1 +
/// device) + t3
[[nodiscard]] constexpr double predict_once_in_turns(std::uint64_t operations,
                                                     const Stages& s) noexcept {
  return static_cast<double>(operations) * (s.submit + s.device) + s.back;
}

/// Returns whether one side is so much slower that the other does not slow it. Sides of similar
/// speed contend for the stream's queue with every operation.
[[nodiscard]] constexpr bool sides_apart(const Stages& s) noexcept {
  constexpr double kApart = 8;
  return std::max(s.submit, s.device) > kApart * std::min(s.submit, s.device);
}

}  // namespace weir
