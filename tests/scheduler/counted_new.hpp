#pragma once

// Counts the allocations of the general heap, on all threads, in a program that links
// counted_new.cpp: that replaces operator new.

#include <cstdint>

namespace weir::testing {

void start_counting_new() noexcept;
/// Those since the start.
[[nodiscard]] std::uint64_t stop_counting_new() noexcept;

}  // namespace weir::testing
