#include "scheduler/device/user_streams_cuda.hpp"

#include <string>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "scheduler/device/device_cuda.hpp"

namespace weir {
namespace {

[[noreturn]] void refuse(StreamRole role, int ordinal, const std::string& why) {
  throw UsageError("cuda:" + std::to_string(ordinal) + ": the stream for " +
                   std::string(to_string(role)) + " " + why);
}

bool is_captured(int ordinal, cudaStream_t stream) {
  const CudaScope scope(ordinal);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code = take_cuda_error(cudaStreamIsCapturing(stream, &status));
  return code == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

/// Whether the stream is of this GPU. No call of all supported runtimes says so, but an event can
/// be recorded only on a stream of its own GPU.
bool is_of(int ordinal, cudaStream_t stream) {
  const CudaScope scope(ordinal);
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  const cudaError_t code = take_cuda_error(cudaEventRecord(event, stream));
  check_cuda(cudaEventDestroy(event), "cudaEventDestroy");
  return code == cudaSuccess;
}

}  // namespace

const std::optional<cudaStream_t>& CudaUserStreams::of(StreamRole role) const noexcept {
  switch (role) {
    case StreamRole::kCompute:
      return compute;
    case StreamRole::kCompute2:
      return compute2;
    case StreamRole::kCopyIn:
      return copy_in;
    case StreamRole::kCopyOut:
      break;
  }
  return copy_out;
}

void require_allowed(const CudaUserStreams& streams, int ordinal) {
  for (const StreamRole role : kAllRoles) {
    const std::optional<cudaStream_t>& stream = streams.of(role);
    if (!stream) continue;
    if (*stream == nullptr || *stream == cudaStreamPerThread) {
      refuse(role, ordinal,
             "is a default stream by a name that means another one on each thread or in each "
             "source file: give a stream of your own, or cudaStreamLegacy");
    }
    for (const StreamRole other : kAllRoles) {
      if (other == role) break;
      if (streams.of(other) != stream) continue;
      refuse(role, ordinal, "is that for " + std::string(to_string(other)) + ", too: give one");
    }
    if (is_captured(ordinal, *stream)) refuse(role, ordinal, "is being captured");
    if (!is_of(ordinal, *stream)) refuse(role, ordinal, "is not a stream of this GPU");
  }
}

}  // namespace weir
