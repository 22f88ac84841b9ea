#include "bench/peers/streams_cuda.hpp"

#include "allocator/base/error_cuda.hpp"

namespace weir::bench {

PeerStreams::~PeerStreams() {
  for (const auto& [id, stream] : streams_) (void)cudaStreamDestroy(stream);
}

cudaStream_t PeerStreams::of(StreamId id) {
  // Every call of a subject looks up a stream, usually that of the previous call. The cache keeps
  // the lookup out of the peer's time.
  struct Last {
    StreamId owner;
    StreamId id;
    cudaStream_t stream = nullptr;
  };
  static constinit thread_local Last last{};
  if (last.owner != number_ || last.id != id) last = {number_, id, find(id)};
  return last.stream;
}

cudaStream_t PeerStreams::find(StreamId id) {
  const std::lock_guard lock(mutex_);
  cudaStream_t& stream = streams_[id];
  if (stream == nullptr) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  }
  return stream;
}

}  // namespace weir::bench
