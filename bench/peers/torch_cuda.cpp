// PyTorch's caching allocator from libc10_cuda.so, without libtorch and Python. A process has only
// one, so its subjects run one after another, and each finds it empty.
//
// On the stand-in its segments are addresses only.

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <c10/util/Logging.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "bench/peers/peers.hpp"
#include "bench/peers/streams_cuda.hpp"
#include "tests/standin/standin.hpp"

// Exported but not declared in any installed header. libtorch_cuda.so, which is missing here, would
// answer whether a device has been used.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace weir::bench {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

constexpr c10::DeviceIndex kDevice = 0;

/// Runs once per process.
void begin_torch() {
  static const bool kBegun = [] {
    weir_standin_set_addresses_only(1);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    // Expandable segments ask this: whether other devices or processes may access them.
    c10::cuda::detail::init_p2p_access_cache(1);
    caching::CUDAAllocatorConfig::set_expandable_segments_handle_type(
        caching::Expandable_Segments_Handle_Type::POSIX_FD);
    FLAGS_caffe2_log_level = 2;  // errors only: it logs every refused mapping
    caching::init(1);
    return true;
  }();
  (void)kBegun;
}

std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

/// Its warnings are about parts of libtorch that are missing here.
class Silence final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

class TorchSubject final : public replay::Subject {
 public:
  TorchSubject(Bytes capacity, const std::string& settings) : turn_(one_at_a_time()) {
    // The size of the device. Each expandable segment takes 9/8 of the device's initial addresses.
    weir_standin_set_memory(gib(1024).count);
    begin_torch();
    weir_standin_set_memory(capacity.count);
    c10::CachingAllocator::setAllocatorSettings(settings);
    const auto before = caching::getDeviceStats(kDevice);
    calls_before_ = before.num_device_alloc + before.num_device_free;
  }
  ~TorchSubject() override { caching::emptyCache(); }
  TorchSubject(const TorchSubject&) = delete;
  TorchSubject& operator=(const TorchSubject&) = delete;

  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream) override {
    try {
      return caching::raw_alloc_with_stream(bytes.count, streams_.of(stream));
    } catch (const c10::OutOfMemoryError&) {
      return nullptr;
    }
  }
  void deallocate(void* pointer, Bytes /*bytes*/, StreamId /*stream*/) override {
    caching::raw_delete(pointer);
    if (used_.empty()) return;
    const auto uses = used_.find(pointer);
    if (uses == used_.end()) return;
    // It checks at the next request whether the device has passed such a free. With no lag the
    // device has, but the stand-in's streams are threads that may not have run yet.
    for (cudaStream_t stream : uses->second) {
      check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }
    used_.erase(uses);
  }
  void record_use(void* pointer, StreamId stream) override {
    const cudaStream_t other = streams_.of(stream);
    c10::DataPtr data(pointer, pointer, caching::get()->raw_deleter(), {c10::kCUDA, kDevice});
    caching::recordStream(data, c10::cuda::getStreamFromExternal(other, kDevice));
    (void)data.release_context();  // the block stays allocated
    used_[pointer].push_back(other);
  }
  [[nodiscard]] replay::Footprint footprint() const override {
    const auto stats = caching::getDeviceStats(kDevice);
    const auto bytes = [](const c10::CachingAllocator::StatArray& stat) {
      return Bytes{static_cast<std::uint64_t>(stat.front().current)};
    };
    return {.allocated = bytes(stats.allocated_bytes),
            .reserved = bytes(stats.reserved_bytes),
            .largest_free = {},
            .driver_calls = static_cast<std::uint64_t>(stats.num_device_alloc +
                                                       stats.num_device_free - calls_before_)};
  }

 private:
  std::unique_lock<std::mutex> turn_;
  Silence silence_;
  c10::WarningUtils::WarningHandlerGuard silenced_{&silence_};
  PeerStreams streams_;
  std::int64_t calls_before_ = 0;
  std::unordered_map<void*, std::vector<cudaStream_t>> used_;  ///< uses on other streams, by block
};

Peer peer(std::string name, std::string settings) {
  return {.name = std::move(name),
          .settings = "PyTorch's caching allocator, " + settings,
          .takes_upstream = false,
          .on = [settings](const MakeUpstream& /*upstream*/) -> replay::MakeSubject {
            return [settings](Bytes capacity) {
              return std::make_unique<TorchSubject>(capacity, settings);
            };
          }};
}

}  // namespace

void add_torch(Peers& peers) {
  peers.found.push_back(peer("torch", "expandable_segments:False"));
  peers.found.push_back(peer("torch_expandable", "expandable_segments:True"));
}

}  // namespace weir::bench
