#pragma once

// Counts heap allocations on all threads, in a program that links counted_new.cpp, which replaces
// operator new.

#include <cstdint>

namespace weir::testing {

void start_counting_new() noexcept;
/// Those since the start.
[[nodiscard]] std::uint64_t stop_counting_new() noexcept;

}  // namespace weir::testing
