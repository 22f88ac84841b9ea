#pragma once

// Makes the heap run out on demand, in a program that links failing_new.cpp, which replaces
// operator new.

#include <cstdint>

namespace weir::testing {

/// Makes the n-th coming allocation on this thread, counted from 1, throw std::bad_alloc.
void fail_new_at(std::uint64_t n) noexcept;
/// Each of them does.
void fail_each_new() noexcept;
/// Ends that. Returns whether an allocation failed.
[[nodiscard]] bool stop_failing_new() noexcept;

}  // namespace weir::testing
