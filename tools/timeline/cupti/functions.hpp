#pragma once

// The functions of CUDA whose calls are recorded: those that start work, wait, or obtain memory.
// The others are called often and tell nothing here. Numbers are CUPTI's ids.

#include <array>
#include <cstdint>

namespace weir::timeline::cupti {

inline constexpr auto kRuntimeCalls = std::to_array<std::uint32_t>({
    211, 214, 269, 270, 430, 431, 505, 506,            // cudaLaunchKernel, ...Cooperative, ...ExC
    311, 312,                                          // cudaGraphLaunch
    31,  32,  41,  44,  145, 161, 225, 228, 246,       // cudaMemcpy, 2D, Async, 3D, Peer
    482, 483, 484, 485, 509, 510, 511, 512,            // cudaMemcpyBatchAsync
    49,  50,  51,  52,  142, 143, 233, 235, 236,       // cudaMemset
    131, 137, 147, 165, 239, 247,                      // cuda...Synchronize, cudaStreamWaitEvent
    20,  22,  25,  26,  206, 373, 374, 375, 376, 391,  // cudaMalloc, cudaFree
    392,
});

inline constexpr auto kDriverCalls = std::to_array<std::uint32_t>({
    307, 442, 477, 478, 652, 653,  // cuLaunchKernel, ...Cooperative, ...Ex
    514, 515,                      // cuGraphLaunch
    17,  121, 126, 440,            // cu...Synchronize
    243, 245, 549, 551, 552, 598,  // cuMemAlloc, cuMemFree, cuMemCreate, cuMemMap
    599, 600, 601,
});

}  // namespace weir::timeline::cupti
