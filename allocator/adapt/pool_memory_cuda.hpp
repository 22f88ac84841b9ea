#pragma once

/// @file
/// A pool of GPU memory by CUDA streams, for weir/cuda_resource.hpp and programs' own adapters.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "allocator/adapt/cuda_streams_cuda.hpp"
#include "allocator/pool.hpp"

namespace weir {

/// A handle: copies serve the same pool. The pool is over the Progress of `streams`, and both
/// outlive it. Thread-safe.
///
///   CudaUpstream upstream{0};
///   CudaProgress progress{0};
///   CudaStreams streams{progress};
///   Pool pool{{upstream, progress}};
///   PoolMemory memory{pool, streams};
class PoolMemory {
 public:
  /// Serves `pool`.
  PoolMemory(Pool& pool, CudaStreams& streams) noexcept : pool_(&pool), streams_(&streams) {}

  /// Allocates for later work on `stream`. Returns null for 0 bytes, and with the pool's report in
  /// `why` if there is no memory. Throws CudaError if the device or the stream cannot be used.
  [[nodiscard]] void* allocate(std::size_t bytes, cudaStream_t stream, std::string& why);
  /// Frees in the order of `stream`: work enqueued there so far may still use the memory. What
  /// cannot be freed stays allocated, and a line on standard error says so.
  void deallocate(void* pointer, cudaStream_t stream) noexcept;
  /// Returns the number of the GPU.
  [[nodiscard]] int device() const noexcept { return streams_->device(); }

  /// True for handles of the same pool.
  friend bool operator==(const PoolMemory& a, const PoolMemory& b) noexcept {
    return a.pool_ == b.pool_;
  }

 private:
  Pool* pool_;
  CudaStreams* streams_;
};

}  // namespace weir
