#pragma once

// Marks a function that a GPU kernel may call too. For a host compiler it says nothing.

#if defined(__CUDACC__)
#define WEIR_HOST_DEVICE __host__ __device__
#else
#define WEIR_HOST_DEVICE
#endif
