#pragma once

// The CUDA streams that stand for a trace's.

#include <cuda_runtime_api.h>

#include <mutex>
#include <unordered_map>

#include "allocator/progress/progress.hpp"

namespace weir::bench {

/// A stream for each id that was ever asked for, until the end. Thread-safe.
class PeerStreams {
 public:
  PeerStreams() = default;
  PeerStreams(const PeerStreams&) = delete;
  PeerStreams& operator=(const PeerStreams&) = delete;
  ~PeerStreams();

  /// Made when it is first asked for, not blocking on the default one. Throws CudaError.
  [[nodiscard]] cudaStream_t of(StreamId id);

 private:
  [[nodiscard]] cudaStream_t find(StreamId id);

  const StreamId number_ = StreamId::next();  ///< of this object, never another's
  std::mutex mutex_;
  std::unordered_map<StreamId, cudaStream_t> streams_;
};

}  // namespace weir::bench
