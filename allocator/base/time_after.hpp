#pragma once

// The end of a wait of a given length, for any length.

#include <chrono>

namespace weir {

/// Returns `from` + `length`, or the latest time if that is past it: a wait of that long has no
/// end. A negative length is none.
template <typename Rep, typename Period>
[[nodiscard]] constexpr std::chrono::nanoseconds time_after(
    std::chrono::nanoseconds from, std::chrono::duration<Rep, Period> length) noexcept {
  using Length = std::chrono::duration<Rep, Period>;
  constexpr auto kLatest = std::chrono::nanoseconds::max();
  if (length <= Length::zero()) return from;
  // Compared in the coarser unit: in nanoseconds the length may not fit.
  const auto left = from.count() > 0 ? kLatest - from : kLatest;
  if (length > std::chrono::duration_cast<Length>(left)) return kLatest;
  return from + std::chrono::duration_cast<std::chrono::nanoseconds>(length);
}
/// The same for a time of the steady clock.
template <typename Rep, typename Period>
[[nodiscard]] constexpr std::chrono::steady_clock::time_point time_after(
    std::chrono::steady_clock::time_point from,
    std::chrono::duration<Rep, Period> length) noexcept {
  return std::chrono::steady_clock::time_point(time_after(from.time_since_epoch(), length));
}
/// Returns the time of the steady clock at the end of `length` from now on.
template <typename Rep, typename Period>
[[nodiscard]] std::chrono::steady_clock::time_point time_after_now(
    std::chrono::duration<Rep, Period> length) noexcept {
  return time_after(std::chrono::steady_clock::now(), length);
}

}  // namespace weir
