#pragma once

// WEIR_HOST_DEVICE marks a function that GPU kernels may call too. WEIR_UNROLL, before a loop,
// makes a device's compiler repeat its body instead of looping, so that an array that it indexes
// can be in registers. Both are empty for a host compiler.

#if defined(__CUDACC__)
#define WEIR_HOST_DEVICE __host__ __device__
#define WEIR_UNROLL _Pragma("unroll")
#else
#define WEIR_HOST_DEVICE
#define WEIR_UNROLL
#endif
