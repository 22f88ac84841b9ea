// RAPIDS Memory Manager's suballocators pool, arena and binning, from its headers up to version
// 26.2. They call this program's CUDA runtime, and so run on the stand-in. Later versions are in
// librmm.so, which brings its own runtime.
//
// RMM keeps a freed block for its stream and makes another stream wait for it on the device, so a
// device's lag does not change what it reserves. It has no call for the use of a block on a second
// stream.

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <rmm/cuda_device.hpp>
#include <rmm/error.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/device_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <utility>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "bench/peers/peers.hpp"
#include "bench/peers/streams_cuda.hpp"

// Replace librmm.so's functions, which ask their own linked runtime; that does not start on the
// stand-in. A program's functions take precedence over a library's, and these ask the program's
// runtime.

// The arena calls this even if its size is given.
std::pair<std::size_t, std::size_t> rmm::available_device_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  weir::check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {free, total};
}
void rmm::cuda_stream_view::synchronize() const {
  weir::check_cuda(cudaStreamSynchronize(value()), "cudaStreamSynchronize");
}
void rmm::cuda_stream_view::synchronize_no_throw() const noexcept { synchronize(); }

namespace weir::bench {
namespace {

using Resource = rmm::mr::device_memory_resource;

constexpr std::uint64_t kUnit = 256;  ///< RMM's rounding of sizes (rmm::CUDA_ALLOCATION_ALIGNMENT)

constexpr Bytes rounded_up(Bytes bytes) { return {(bytes.count + kUnit - 1) / kUnit * kUnit}; }

/// Adapts our upstream to RMM's interface, with counts.
class RmmUpstream final : public Resource {
 public:
  explicit RmmUpstream(std::unique_ptr<Upstream> upstream) : upstream_(std::move(upstream)) {}

  [[nodiscard]] std::uint64_t calls() const { return calls_.load(); }
  [[nodiscard]] Bytes reserved() const { return {reserved_.load()}; }

 private:
  void* do_allocate(std::size_t bytes, rmm::cuda_stream_view /*stream*/) override {
    ++calls_;
    void* const memory = upstream_->allocate({bytes});
    if (memory == nullptr) throw rmm::out_of_memory("the upstream has no more");
    reserved_ += bytes;
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes,
                     rmm::cuda_stream_view /*stream*/) noexcept override {
    ++calls_;
    upstream_->deallocate(memory, {bytes});
    reserved_ -= bytes;
  }

  const std::unique_ptr<Upstream> upstream_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> reserved_{0};
};

/// Resources, each on top of the previous one; the last one serves requests.
using Layers = std::vector<std::unique_ptr<Resource>>;

using Pool = rmm::mr::pool_memory_resource<Resource>;

void add_whole_pool(Layers& layers, Bytes capacity) {
  const std::size_t size = capacity.count / kUnit * kUnit;
  layers.push_back(std::make_unique<Pool>(layers.back().get(), size, size));
}
void add_growing_pool(Layers& layers, Bytes /*capacity*/) {
  layers.push_back(std::make_unique<Pool>(layers.back().get(), 0, std::nullopt));
}
void add_arena(Layers& layers, Bytes capacity) {
  using Arena = rmm::mr::arena_memory_resource<Resource>;
  layers.push_back(
      std::make_unique<Arena>(layers.back().get(), capacity.count / kUnit * kUnit, false));
}
void add_bins(Layers& layers, Bytes capacity) {
  using Bins = rmm::mr::binning_memory_resource<Resource>;
  add_whole_pool(layers, capacity);
  layers.push_back(std::make_unique<Bins>(layers.back().get(), std::int8_t{18}, std::int8_t{22}));
}

using AddLayers = void (*)(Layers& layers, Bytes capacity);

class RmmSubject final : public replay::Subject {
 public:
  RmmSubject(std::unique_ptr<Upstream> upstream, AddLayers add, Bytes capacity) {
    auto counted = std::make_unique<RmmUpstream>(std::move(upstream));
    upstream_ = counted.get();
    layers_.push_back(std::move(counted));
    try {
      add(layers_, capacity);
      serves_ = true;
    } catch (const std::bad_alloc&) {  // less than its initial allocation
    }
    says_allocated_ = add == add_whole_pool || add == add_growing_pool;
  }
  ~RmmSubject() override {
    while (!layers_.empty()) layers_.pop_back();
  }
  RmmSubject(const RmmSubject&) = delete;
  RmmSubject& operator=(const RmmSubject&) = delete;

  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream) override {
    if (!serves_) return nullptr;
    try {
      void* const memory = layers_.back()->allocate(streams_.of(stream), bytes.count);
      allocated_.fetch_add(rounded_up(bytes).count, std::memory_order_relaxed);
      return memory;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  void deallocate(void* pointer, Bytes bytes, StreamId stream) override {
    layers_.back()->deallocate(streams_.of(stream), pointer, bytes.count);
    allocated_.fetch_sub(rounded_up(bytes).count, std::memory_order_relaxed);
  }
  void record_use(void* /*pointer*/, StreamId /*stream*/) override {}
  [[nodiscard]] replay::Footprint footprint() const override {
    return {.allocated = says_allocated_ ? Bytes{allocated_.load()} : Bytes{},
            .reserved = upstream_->reserved(),
            .largest_free = {},
            .driver_calls = upstream_->calls()};
  }

 private:
  PeerStreams streams_;
  Layers layers_;
  RmmUpstream* upstream_ = nullptr;
  bool serves_ = false;
  bool says_allocated_ = false;
  std::atomic<std::uint64_t> allocated_{0};
};

Peer peer(std::string name, std::string settings, AddLayers add) {
  return {.name = std::move(name),
          .settings = std::move(settings),
          .takes_upstream = true,
          .on = [add](const MakeUpstream& upstream) -> replay::MakeSubject {
            return [add, upstream](Bytes capacity) {
              return std::make_unique<RmmSubject>(upstream(capacity), add, capacity);
            };
          }};
}

}  // namespace

void add_rmm(Peers& peers) {
  // It logs every refused request, and a search for the least capacity makes many.
  rmm::default_logger().set_level(rapids_logger::level_enum::off);
  peers.found.push_back(
      peer("rmm_pool", "pool_memory_resource, the whole capacity taken at once", add_whole_pool));
  peers.found.push_back(peer("rmm_pool_grow",
                             "pool_memory_resource, from nothing, no maximum: it grows by doubling",
                             add_growing_pool));
  peers.found.push_back(
      peer("rmm_arena", "arena_memory_resource over the whole capacity", add_arena));
  peers.found.push_back(
      peer("rmm_binning",
           "binning_memory_resource(18, 22), as its documentation has it: bins of "
           "256 KiB to 4 MiB over rmm_pool",
           add_bins));
}

}  // namespace weir::bench
