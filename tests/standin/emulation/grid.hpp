#pragma once

// Runs a kernel's function for every thread of a grid, on the calling thread: block after block,
// and in a block thread after thread, each as far as the next barrier.

#include <cstdint>

#include "tests/standin/standin.hpp"

namespace weir::standin {

/// `thread` is called once for each thread of the launch. The program ends with a message when
/// threads of a block wait for others that never come.
void run_grid(const WeirStandinLaunch& launch, void (*thread)(const WeirStandinLaunch&));

/// By a thread of the grid: waits for all other threads of its block that have not ended.
void block_barrier();
/// The same, and how many of them say `yes`.
unsigned block_count(bool yes);
/// Waits for those lanes of its warp that are in `mask` and have not ended.
void warp_barrier(unsigned mask);
/// Gives `value` to the lanes in `mask`, and takes what lane `source` gave.
std::uint64_t warp_exchange(unsigned mask, std::uint64_t value, unsigned source);
/// The lanes in `mask` that say `yes`, as bits.
unsigned warp_ballot(unsigned mask, bool yes);
/// Its place in its warp.
unsigned lane();

}  // namespace weir::standin
