#pragma once

/// @file
/// The CUDA stream behind a Stream, for submitted closures that launch kernels.

#include <cuda_runtime_api.h>

#include "scheduler/stream.hpp"

namespace weir {

/// The CUDA stream that `stream` enqueues on. Its device is the current one while a submitted
/// closure runs. Undefined for a stream of another kind of device.
[[nodiscard]] cudaStream_t cuda_stream(Stream& stream) noexcept;

}  // namespace weir
