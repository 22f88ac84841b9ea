#pragma once

/// @file
/// A CUDA stream, for headers that do not include CUDA's.
///
/// Common rules of `weir::cuda`, whose functions enqueue on a stream: spans are device memory. A
/// call checks the sizes (UsageError, with nothing enqueued), enqueues on `stream` and returns;
/// CudaError on failure. Thread-safe for disjoint outputs. The bits are those of the CPU's function
/// of the same name, but for the payload of a NaN. They are defined only in a build with a CUDA
/// toolkit.
///
/// A span may start at any element. Spans of one call that reach a 16-byte boundary at the same
/// element are moved sixteen bytes at once, others element by element.

struct CUstream_st;

namespace weir::cuda {

using Stream = CUstream_st*;  ///< cudaStream_t

}  // namespace weir::cuda
