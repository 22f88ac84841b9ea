#pragma once

/// @file
/// How far the streams of a GPU have come, by pooled CUDA events without timing.

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <vector>

#include "allocator/events_cuda.hpp"
#include "allocator/lane_cuda.hpp"
#include "allocator/mutex.hpp"
#include "allocator/progress.hpp"

namespace weir {

/// Progress of streams that others made. A program that has streams of its own gives them to a pool
/// with this and a CudaUpstream:
///
///   CudaUpstream upstream{0};
///   CudaProgress progress{0};
///   const StreamId id = progress.add(stream);
///   Pool pool{{upstream, progress}};
///
/// Thread-safe.
class CudaProgress final : public Progress {
 public:
  /// Of streams of GPU number `device`.
  explicit CudaProgress(int device)
      : asked_(device, CudaEventWait::kSpins), slept_on_(device, CudaEventWait::kSleeps) {}
  /// Every stream must have passed its points, or be lost.
  ~CudaProgress() override;

  /// Follows `stream` from now on, which must stay until `remove`. `completion` is told of marked
  /// work, and outlives this. UsageError for a default stream, whose handle means another stream on
  /// each thread or device.
  StreamId add(cudaStream_t stream, CudaWork work = CudaWork::kUnmarked,
               CudaCompletion* completion = nullptr);
  /// Waits until the stream has passed everything; it may be destroyed then. Its points stay
  /// passed. Throws CudaError where the device fails.
  void remove(StreamId stream);
  /// The lane of a stream; UsageError for one that was never added.
  [[nodiscard]] CudaLane& lane(StreamId stream) const;

  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  /// Throws CudaError where the device fails.
  [[nodiscard]] bool wait(Point point, std::stop_token stop) override;
  void make_wait(StreamId waiter, Point point) override;

  /// Events that were ever made: none more once a program has reached its greatest run-ahead.
  [[nodiscard]] std::size_t events_made() const { return asked_.made() + slept_on_.made(); }

 private:
  struct Entry {
    CudaLane lane;
    std::atomic<bool> removed{false};
    Entry* next;  ///< the one that was added before
  };
  [[nodiscard]] Entry& find(StreamId stream) const;

  CudaEvents asked_;     ///< of streams whose work is not marked: nobody sleeps on theirs
  CudaEvents slept_on_;  ///< of those whose work is marked: a thread of the stream does
  Mutex mutex_{LockRank::kLeaf};
  /// A list that is only added to, so that a look at it takes no lock: every free looks.
  std::atomic<Entry*> entries_{nullptr};
};

}  // namespace weir
