#pragma once

// The CUDA streams that represent a trace's streams.

#include <cuda_runtime_api.h>

#include <mutex>
#include <unordered_map>

#include "allocator/progress/progress.hpp"

namespace weir::bench {

/// Creates a stream for each id on first use and keeps it until the end. Thread-safe.
class PeerStreams {
 public:
  PeerStreams() = default;
  PeerStreams(const PeerStreams&) = delete;
  PeerStreams& operator=(const PeerStreams&) = delete;
  ~PeerStreams();

  /// Returns the stream, which does not block on the default one. Throws CudaError.
  [[nodiscard]] cudaStream_t of(StreamId id);

 private:
  [[nodiscard]] cudaStream_t find(StreamId id);

  const StreamId number_ = StreamId::next();  ///< unique to this object
  std::mutex mutex_;
  std::unordered_map<StreamId, cudaStream_t> streams_;
};

}  // namespace weir::bench
