#pragma once

/// @file
/// A GPU on which operations run on CUDA streams of the program.

#include <cuda_runtime_api.h>

#include <optional>

#include "scheduler/device/device.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// CUDA streams of the program, by role. A role without one gets a stream of the device's own.
///
/// The program may enqueue work there itself. That work runs after operations that were submitted
/// earlier to the role, and before those submitted later. Frees and the ends of batches wait for
/// it. Its time counts as the next operation's.
struct CudaUserStreams {
  std::optional<cudaStream_t> compute{};   ///< for StreamRole::kCompute
  std::optional<cudaStream_t> compute2{};  ///< for StreamRole::kCompute2
  std::optional<cudaStream_t> copy_in{};   ///< for StreamRole::kCopyIn
  std::optional<cudaStream_t> copy_out{};  ///< for StreamRole::kCopyOut
  /// Returns the stream for `role`.
  [[nodiscard]] const std::optional<cudaStream_t>& of(StreamRole role) const noexcept;
};

/// Opens GPU number `ordinal` as open_device does, with `streams`.
///
/// The device never destroys them. Each must exist until the device is closed, which waits for all
/// that was submitted and then uses no stream any more. If one is destroyed before, later
/// submissions to it fail and everything still ends, but memory that was used on it is not reused.
///
/// None may be captured (`cudaStreamBeginCapture`) meanwhile: a submission to it then throws
/// CudaError, and no memory that was used on it is reused until the capture ends.
///
/// Throws UsageError for a stream that is given twice, for one of another GPU, and for a null
/// handle and `cudaStreamPerThread`, which mean another stream on each thread or in each source
/// file. The legacy default stream is given as `cudaStreamLegacy`: it waits for the blocking
/// streams of the program, and they for it (CUDA C++ Programming Guide, "Default Stream").
[[nodiscard]] Device open_cuda_device(int ordinal, const CudaUserStreams& streams,
                                      const DeviceOptions& options = {});

}  // namespace weir
