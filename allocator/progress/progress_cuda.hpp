#pragma once

/// @file
/// How far the streams of a GPU have come, by reused CUDA events without timing.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/followed_stream_cuda.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// Progress of streams that others created. A program gives its own streams to a pool with this and
/// a CudaUpstream:
///
///   CudaUpstream upstream{0};
///   CudaProgress progress{0};
///   const StreamId id = progress.add(stream);
///   Pool pool{{upstream, progress}};
///
/// Thread-safe.
class CudaProgress final : public Progress {
 public:
  /// Follows streams of GPU number `device`.
  explicit CudaProgress(int device) : device_(device) {}
  /// Every stream must have passed its points, or be lost.
  ~CudaProgress() override = default;

  /// Follows `stream`, which must exist until `remove`. `completion` receives marked work and
  /// outlives this. `cudaStreamLegacy` is the device's legacy default stream, whose events make
  /// blocking streams wait for each other. Throws UsageError for the other names of a default
  /// stream, whose meaning depends on the thread or the compiler.
  StreamId add(cudaStream_t stream, CudaWork work = CudaWork::kUnmarked,
               CudaCompletion* completion = nullptr);
  /// Waits until the stream has passed everything, even what others record meanwhile, and forgets
  /// it. It may then be destroyed. Its points stay passed. Throws CudaError if the device fails.
  void remove(StreamId stream);
  /// Forgets the stream if it has passed every point, and returns whether it did. Makes no call for
  /// a stream that is fenced, which may be gone. Throws CudaError if the device fails.
  [[nodiscard]] bool remove_if_passed(StreamId stream);
  /// Records an event behind all points of the stream now, not on request. Afterwards only new
  /// points and waits need the stream. Does nothing for a removed stream. Throws CudaError if no
  /// event can be recorded now.
  void fence(StreamId stream);
  /// Returns a stream between `add` and `remove`. Throws UsageError for any other.
  [[nodiscard]] FollowedCudaStream& followed(StreamId stream) const { return *require(stream); }

  // Each call throws UsageError for a stream that was never added.
  /// Returns a passed point for a removed stream.
  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  /// Throws CudaError if the device fails.
  [[nodiscard]] bool wait(Point point, const WaitLimit& limit) override;
  /// Also throws UsageError if `waiter` was removed.
  void make_wait(StreamId waiter, Point point) override;

  [[nodiscard]] int device() const noexcept { return device_; }  ///< as constructed
  /// Returns the number of followed streams.
  [[nodiscard]] std::size_t streams() const;

 private:
  /// The ids that this gave out, in blocks, so that a few numbers identify them however many
  /// streams came and went.
  class Ids {
   public:
    [[nodiscard]] StreamId next();
    [[nodiscard]] bool gave(StreamId id) const;

   private:
    static constexpr std::uint64_t kBlock = 4096;
    std::vector<std::uint64_t> blocks_;  ///< the first id of each, ascending
    std::uint64_t given_ = kBlock;       ///< in the last block
  };

  /// Returns null for a removed stream. The result stays valid even if the stream is removed
  /// meanwhile.
  [[nodiscard]] std::shared_ptr<FollowedCudaStream> find(StreamId stream) const;
  /// Forgets a stream that is closed.
  void forget(StreamId stream);
  /// Like `find`, but throws UsageError for a removed stream.
  [[nodiscard]] std::shared_ptr<FollowedCudaStream> require(StreamId stream) const;

  const int device_;
  mutable Mutex mutex_{LockRank::kLeaf};
  Ids ids_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<StreamId, std::shared_ptr<FollowedCudaStream>> streams_
      WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
