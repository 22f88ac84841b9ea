#pragma once

// The variants of functions for programs whose default stream is each thread's own.

#include <cuda.h>

namespace weir::standin {

inline CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace weir::standin
