#pragma once

/// @file
/// CUDA events that are used again and again: making one takes longer than recording it.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"

namespace weir {

/// An event without timing. Guarded by the lock of the lane that has it.
struct CudaEvent {
  cudaEvent_t handle = nullptr;  ///< the runtime's
  std::uint32_t waiters = 0;     ///< threads in cudaEventSynchronize on it
  bool retired = false;          ///< its lane needs it no more: the last waiter gives it back
};

/// What a thread does that waits in `cudaEventSynchronize` for such events. An event to sleep on
/// may interrupt the host each time that the device passes it (unverified), slept on or not.
enum class CudaEventWait : std::uint8_t {
  kSleeps,
  kSpins,  ///< for events that are only asked
};

/// The events of one GPU. Thread-safe. All that it gave must be back when it ends.
class CudaEvents {
 public:
  /// Makes none yet.
  CudaEvents(int device, CudaEventWait wait) noexcept : device_(device), wait_(wait) {}
  /// Destroys them.
  ~CudaEvents();
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;

  /// One that nobody uses. CudaError where none can be made.
  [[nodiscard]] CudaEvent& acquire();
  /// `event` may be recorded again.
  void give_back(CudaEvent& event) noexcept;
  /// How many were ever made.
  [[nodiscard]] std::size_t made() const;

 private:
  const int device_;
  const CudaEventWait wait_;
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<std::unique_ptr<CudaEvent>> events_ WEIR_GUARDED_BY(mutex_);
  std::vector<CudaEvent*> free_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
