#pragma once

/// @file
/// The CUDA streams of a program as streams of a pool, by their handles.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/progress_cuda.hpp"

namespace weir {

/// Follows each stream from its first use here. A stream may be destroyed as soon as the blocks
/// that were allocated on it, or freed in its order, are freed: nobody need tell. Its handle may
/// then come back as another stream, which gets an id of its own.
///
/// The default streams, per-thread ones too, are one stream here: the legacy stream, which waits
/// for blocking streams, and they for it (CUDA C++ Programming Guide, "Default Stream"; per-thread
/// default streams are blocking ones). Their frees therefore make blocking streams wait for each
/// other. Null means the legacy stream.
///
/// Thread-safe. The Progress must outlive it.
class CudaStreams {
 public:
  /// Streams of `progress`'s GPU.
  explicit CudaStreams(CudaProgress& progress) noexcept : progress_(progress) {}
  CudaStreams(const CudaStreams&) = delete;
  CudaStreams& operator=(const CudaStreams&) = delete;

  /// A stream in use: its id stays valid as long as this lives.
  class Use {
   public:
    Use(CudaStreams& streams, std::uint64_t key, StreamId id) noexcept  ///< for CudaStreams
        : streams_(streams), key_(key), id_(id) {}
    ~Use() { streams_.end(key_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Returns what the pool knows it by.
    [[nodiscard]] StreamId id() const noexcept { return id_; }

   private:
    CudaStreams& streams_;
    const std::uint64_t key_;
    const StreamId id_;
  };
  /// Follows the stream if it is new. Throws CudaError for a stream that does not exist.
  [[nodiscard]] Use use(cudaStream_t stream);

  /// Returns the number of the GPU.
  [[nodiscard]] int device() const noexcept { return progress_.device(); }
  /// Records events behind what was freed in the order of `stream`: later calls need it no more.
  /// During a capture of the stream this is left for later; then it must exist until then.
  void fence(StreamId stream) noexcept;

 private:
  static constexpr std::size_t kFew = 64;  ///< streams that are not looked through
  struct Followed {
    StreamId id;
    std::size_t users = 0;
  };
  void end(std::uint64_t key) noexcept;
  /// Forgets streams that nobody uses and that have passed everything, once there are many.
  void forget_done() WEIR_REQUIRES(mutex_);

  CudaProgress& progress_;
  Mutex mutex_{LockRank::kSlab};  ///< taken before a stream's, and under no lock of the pool
  std::unordered_map<std::uint64_t, Followed> streams_ WEIR_GUARDED_BY(mutex_);  ///< by CUDA's id
  std::size_t forget_at_ WEIR_GUARDED_BY(mutex_) = kFew;
};

}  // namespace weir
