#pragma once

// Variants of functions for programs with per-thread default streams.

#include <cuda.h>

namespace weir::standin {

inline CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace weir::standin
