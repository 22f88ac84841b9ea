#pragma once

// The CUDA runtime's calls for events without timing.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "allocator/base/error_cuda.hpp"
#include "allocator/progress/events.hpp"

namespace weir {

/// Makes `call` while `device` is current, and returns its code.
template <typename Call>
[[nodiscard]] cudaError_t code_on_device(int device, const Call& call) noexcept {
  try {
    const CudaScope scope(device);
    return take_cuda_error(call());
  } catch (const CudaError& error) {
    return error.code();
  } catch (...) {
    return cudaErrorMemoryAllocation;
  }
}

/// Makes `call`, which names `stream` of `device`, and returns its code. Each device has a legacy
/// stream, and its name means that of the current device.
template <typename Call>
[[nodiscard]] cudaError_t code_for_stream(cudaStream_t stream, int device,
                                          const Call& call) noexcept {
  return stream == cudaStreamLegacy ? code_on_device(device, call) : take_cuda_error(call());
}

/// How a thread waits in `cudaEventSynchronize` for such events. An event to sleep on may interrupt
/// the host each time the device passes it, even if nobody sleeps (unverified).
enum class CudaEventWait : std::uint8_t {
  kSleeps,
  kSpins,  ///< for events that are only queried
};

/// The runtime's calls for events of one GPU.
class CudaEventCalls {
 public:
  using Event = cudaEvent_t;    ///< the runtime's
  using Stream = cudaStream_t;  ///< the runtime's
  using Code = cudaError_t;     ///< the runtime's

  /// Uses GPU number `device`.
  CudaEventCalls(int device, CudaEventWait wait) noexcept : device_(device), wait_(wait) {}
  // No call leaves an error behind for another caller.
  [[nodiscard]] Code create(Event& event) const noexcept;
  [[nodiscard]] Code record(Event event, Stream stream) const noexcept;
  [[nodiscard]] Code query(Event event) const noexcept;
  [[nodiscard]] Code destroy(Event event) const noexcept;

 private:
  int device_;
  CudaEventWait wait_;
};

/// The events of one stream.
using CudaEvents = EventStore<CudaEventCalls>;

static_assert(event_state(cudaSuccess) == EventState::kPassed);
static_assert(event_state(cudaErrorNotReady) == EventState::kNotPassed);
static_assert(event_state(cudaErrorStreamCaptureUnsupported) == EventState::kCaptured);
static_assert(event_state(cudaErrorCapturedEvent) == EventState::kCaptured);
static_assert(event_state(cudaErrorStreamCaptureWrongThread) == EventState::kCaptured);
static_assert(event_state(cudaErrorIllegalAddress) == EventState::kFailed);

}  // namespace weir
