#pragma once

// The streams of batches, and their device times there.

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <initializer_list>

#include "scheduler/device/stream.hpp"

namespace weir {

/// Some of the roles. A loop over it gives their places in kAllRoles, in order.
class StreamRoleSet {
 public:
  constexpr StreamRoleSet(std::initializer_list<StreamRole> roles = {}) noexcept {
    for (const StreamRole role : roles) insert(role);
  }
  constexpr void insert(StreamRole role) noexcept { bits_ |= 1U << index_of(role); }
  /// Returns whether `place` in kAllRoles is one of them.
  [[nodiscard]] constexpr bool contains(std::size_t place) const noexcept {
    return (bits_ >> place & 1U) != 0;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }

  /// The roles that a loop has not reached.
  struct Iterator {
    unsigned left;

    constexpr std::size_t operator*() const noexcept {
      return static_cast<std::size_t>(std::countr_zero(left));
    }
    constexpr Iterator& operator++() noexcept {
      left &= left - 1;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) noexcept = default;
  };
  [[nodiscard]] constexpr Iterator begin() const noexcept { return {bits_}; }
  [[nodiscard]] constexpr Iterator end() const noexcept { return {0}; }

 private:
  unsigned bits_ = 0;
};

/// Device time of each stream.
using StreamTimes = std::array<std::chrono::nanoseconds, kStreamRoles>;

/// Device time that is expected of a stream.
struct StreamQueue {
  std::size_t role = 0;
  std::chrono::nanoseconds time{};  ///< behind the running work
  std::chrono::nanoseconds all{};   ///< with the running work
};

/// What one batch did on one stream, on the steady clock.
struct StreamRun {
  std::chrono::nanoseconds device_time{};  ///< zero: the batch did not use the stream
  std::chrono::nanoseconds gap{};          ///< that the stream was idle before the batch
  std::chrono::nanoseconds starved{};      ///< that nothing was enqueued, before it and within it
  std::chrono::nanoseconds begun{};
  std::chrono::nanoseconds ended{};
};
using BatchRun = std::array<StreamRun, kStreamRoles>;

}  // namespace weir
