#pragma once

// The CUDA functions whose calls are recorded: those that start work, wait, or obtain memory. The
// others are called often and add no information. Numbers are CUPTI's ids.

#include <array>
#include <cstdint>

namespace weir::timeline::cupti {

inline constexpr auto kRuntimeCalls = std::to_array<std::uint32_t>({
    211, 214, 269, 270, 430, 431, 505, 506,            // cudaLaunchKernel, ...Cooperative, ...ExC
    311, 312,                                          // cudaGraphLaunch
    31,  32,  41,  44,  144, 145, 160, 161, 162,       // cudaMemcpy, 2D, Async, 3D, Peer
    163, 215, 216, 225, 228, 245, 246, 249, 250,       // the same
    39,  40,  47,  48,  223, 224, 231, 232,            // cudaMemcpyToSymbol, FromSymbol
    482, 483, 484, 485, 509, 510, 511, 512,            // cudaMemcpyBatchAsync
    554, 555, 556, 557,                                // cudaMemcpyWithAttributesAsync
    49,  50,  51,  52,  142, 143, 233, 234, 235,       // cudaMemset
    236, 243, 244,                                     // the same
    131, 137, 147, 165, 239, 247,                      // cuda...Synchronize, cudaStreamWaitEvent
    20,  22,  25,  26,  27,  206, 373, 374, 375, 376,  // cudaMalloc, cudaHostAlloc, cudaFree
    391, 392,
});

inline constexpr auto kDriverCalls = std::to_array<std::uint32_t>({
    307, 442, 477, 478, 652, 653,  // cuLaunchKernel, ...Cooperative, ...Ex
    514, 515,                      // cuGraphLaunch
    276, 277, 278, 279, 280, 281,  // cuMemcpyHtoD, DtoH, DtoD, ...Async
    397, 398, 399, 421, 422, 423,  // the same
    287, 289, 290, 291, 305, 306,  // cuMemcpy2D, 3D, cuMemcpy
    405, 407, 408, 418, 424, 425,  // the same
    318, 319, 320, 321, 409, 410,  // cuMemcpyPeer
    426, 427,                      // the same
    776, 777, 778, 779, 796, 797,  // cuMemcpyBatchAsync
    798, 799, 837, 838, 839, 840,  // the same, cuMemcpyWithAttributesAsync
    249, 250, 251, 252, 253, 254,  // cuMemset
    216, 218, 220, 222, 224, 226,  // cuMemset...Async
    411, 412, 413, 414, 415, 416,  // the same
    428, 429, 430, 431, 432, 433,  // the same
    17,  121, 126, 440, 800,       // cu...Synchronize
    295, 436,                      // cuStreamWaitEvent
    38,  39,  294, 371,            // cuMemFreeHost, cuMemHostAlloc, cuMemAllocHost, Managed
    243, 245, 549, 551, 552, 598,  // cuMemAlloc, cuMemFree, cuMemCreate, cuMemMap
    599, 600, 601, 611, 612,       // the same, cuMemAllocFromPoolAsync
});

}  // namespace weir::timeline::cupti
