#include <unordered_map>

#include "allocator/base/error_cuda.hpp"
#include "allocator/pool.hpp"
#include "allocator/progress/progress_cuda.hpp"
#include "bench/peers/peers.hpp"
#include "bench/peers/streams_cuda.hpp"

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

namespace {

class CudaPoolSubject final : public replay::Subject {
 public:
  CudaPoolSubject(const PoolOptions& options, Bytes capacity)
      : upstream_(capacity), pool_(DeviceMemory{upstream_, progress_}, options) {}

  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream) override {
    Attempt attempt;
    return pool_.try_allocate(bytes, of(stream), {}, attempt);
  }
  void deallocate(void* pointer, Bytes /*bytes*/, StreamId stream) override {
    (void)pool_.deallocate(pointer, of(stream));
  }
  void record_use(void* pointer, StreamId stream) override {
    pool_.record_use(pointer, of(stream));
  }
  [[nodiscard]] replay::Footprint footprint() const override {
    const Statistics statistics = pool_.statistics();
    return {.allocated = statistics.allocated.current,
            .reserved = statistics.reserved.current,
            .largest_free = {}};
  }

 private:
  /// Returns the device stream for `id`. For one thread, as in a benchmark.
  [[nodiscard]] StreamId of(StreamId id) {
    if (last_ != id) {
      StreamId& known = ids_[id];
      if (known == StreamId{}) known = progress_.add(streams_.of(id));
      last_ = id;
      last_known_ = known;
    }
    return last_known_;
  }

  PeerStreams streams_;
  CudaProgress progress_{0};
  SimulatedUpstream upstream_;
  Pool pool_;
  std::unordered_map<StreamId, StreamId> ids_;
  StreamId last_;
  StreamId last_known_;
};

std::unique_ptr<replay::Subject> make_pool(const PoolOptions& options, Bytes capacity) {
  return std::make_unique<CudaPoolSubject>(options, capacity);
}

std::function<void()> make_event_recorder() {
  const auto streams = std::make_shared<PeerStreams>();
  cudaStream_t stream = streams->of(StreamId::next());
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  const std::shared_ptr<CUevent_st> owned(event, [](cudaEvent_t e) { (void)cudaEventDestroy(e); });
  return [streams, stream, owned] {
    check_cuda(cudaEventRecord(owned.get(), stream), "cudaEventRecord");
  };
}

}  // namespace

const PeersRuntime* peers_runtime() {
  static constexpr PeersRuntime kRuntime{.make_pool = make_pool,
                                         .make_event_recorder = make_event_recorder};
  return &kRuntime;
}

}  // namespace weir::bench
