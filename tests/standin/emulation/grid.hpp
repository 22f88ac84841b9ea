#pragma once

// Runs a kernel's function for every thread of a grid, on the calling thread: block after block,
// and thread after thread, each until the next barrier.

#include <cstdint>

#include "tests/standin/standin.hpp"

namespace weir::standin {

/// Calls `thread` once for each thread of the launch. Ends the program with a message if threads of
/// a block wait for others that never come.
void run_grid(const WeirStandinLaunch& launch, void (*thread)(const WeirStandinLaunch&));

/// For a thread of the grid: waits for all other threads of its block that have not ended.
void block_barrier();
/// The same. Returns how many of them say `yes`.
unsigned block_count(bool yes);
/// Waits for the lanes of its warp that are in `mask` and have not ended.
void warp_barrier(unsigned mask);
/// Gives `value` to the lanes in `mask`. Returns the value of lane `source`.
std::uint64_t warp_exchange(unsigned mask, std::uint64_t value, unsigned source);
/// The lanes in `mask` that say `yes`, as bits.
unsigned warp_ballot(unsigned mask, bool yes);
/// Its place in its warp.
unsigned lane();

}  // namespace weir::standin
