#pragma once

// Makes the heap run out on demand, and counts allocations, in a program that links
// failing_new.cpp, which replaces operator new.

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <string>

namespace weir::testing {

/// Makes the n-th coming allocation on this thread, counted from 1, throw std::bad_alloc.
void fail_new_at(std::uint64_t n) noexcept;
/// Each of them does.
void fail_each_new() noexcept;
/// Ends that. Returns whether an allocation failed.
[[nodiscard]] bool stop_failing_new() noexcept;

/// Calls `act` with its n-th allocation failing. Returns whether there were so many.
template <typename Act>
[[nodiscard]] bool fails_at(std::uint64_t n, const Act& act) {
  fail_new_at(n);
  try {
    act();
  } catch (const std::bad_alloc&) {
    EXPECT_TRUE(stop_failing_new());
  }
  return stop_failing_new();
}
/// Calls `round` with 1, 2, ... until it returns false, or the test has failed.
template <typename Round>
void for_each_allocation(const Round& round) {
  bool more = true;
  for (std::uint64_t n = 1; more && !::testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    ASSERT_LT(n, 2000U) << "it never gets through";
    more = round(n);
  }
}

/// Counts the allocations of all threads.
void start_counting_new() noexcept;
/// Those since the start.
[[nodiscard]] std::uint64_t stop_counting_new() noexcept;

}  // namespace weir::testing
