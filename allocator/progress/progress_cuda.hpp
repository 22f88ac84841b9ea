#pragma once

/// @file
/// How far the streams of a GPU have come, by pooled CUDA events without timing.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/followed_stream_cuda.hpp"
#include "allocator/progress/progress.hpp"

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
  explicit CudaProgress(int device) : device_(device) {}
  /// Every stream must have passed its points, or be lost.
  ~CudaProgress() override = default;

  /// Follows `stream` from now on, which must stay until `remove`. `completion` is told of marked
  /// work, and outlives this. UsageError for a default stream, whose handle means another stream on
  /// each thread or device.
  StreamId add(cudaStream_t stream, CudaWork work = CudaWork::kUnmarked,
               CudaCompletion* completion = nullptr);
  /// Waits until the stream has passed everything, also what other threads record meanwhile, and
  /// keeps nothing of it; it may be destroyed then, whoever asks for it still. Its points stay
  /// passed. Throws CudaError where the device fails.
  void remove(StreamId stream);
  /// What `add` followed, until it is removed. UsageError for a stream that is not followed.
  [[nodiscard]] FollowedCudaStream& followed(StreamId stream) const { return *require(stream); }

  // Each throws UsageError for a stream that was never added.
  /// Of a stream that was removed: a point that is passed.
  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  /// Throws CudaError where the device fails.
  [[nodiscard]] bool wait(Point point, std::stop_token stop) override;
  /// UsageError, too, where `waiter` was removed.
  void make_wait(StreamId waiter, Point point) override;

  /// Streams that are followed now.
  [[nodiscard]] std::size_t streams() const;

 private:
  /// The ids that this gave. They are taken in blocks, so that an id is known as one of them by a
  /// few numbers, however many streams came and went.
  class Ids {
   public:
    [[nodiscard]] StreamId next();
    [[nodiscard]] bool gave(StreamId id) const;

   private:
    static constexpr std::uint64_t kBlock = 4096;
    std::vector<std::uint64_t> blocks_;  ///< the first id of each, ascending
    std::uint64_t given_ = kBlock;       ///< of the last block
  };

  /// Null for a stream that was removed. What it returns stays while it is used, whoever removes
  /// the stream meanwhile.
  [[nodiscard]] std::shared_ptr<FollowedCudaStream> find(StreamId stream) const;
  /// The same; UsageError for a stream that was removed.
  [[nodiscard]] std::shared_ptr<FollowedCudaStream> require(StreamId stream) const;

  const int device_;
  mutable Mutex mutex_{LockRank::kLeaf};
  Ids ids_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<StreamId, std::shared_ptr<FollowedCudaStream>> streams_
      WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
