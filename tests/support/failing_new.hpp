#pragma once

// The general heap runs out when a test says so, in a program that links failing_new.cpp: that
// replaces operator new.

#include <cstdint>

namespace weir::testing {

/// The n-th allocation on this thread from now on, counted from 1, throws std::bad_alloc.
void fail_new_at(std::uint64_t n) noexcept;
/// Each of them does.
void fail_each_new() noexcept;
/// No more of that; whether one did.
[[nodiscard]] bool stop_failing_new() noexcept;

}  // namespace weir::testing
