#pragma once

// Marks a function that GPU kernels may call too. Empty for a host compiler.

#if defined(__CUDACC__)
#define WEIR_HOST_DEVICE __host__ __device__
#else
#define WEIR_HOST_DEVICE
#endif
