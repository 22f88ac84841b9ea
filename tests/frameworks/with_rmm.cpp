// RMM's memory on the stand-in: with_rmm FEATURE. Exit codes: feature.py.
//
// Of version 26.2, the last whose resources are in its headers: they call the CUDA runtime that
// this program has. Later ones, and the Python package, bring a runtime of their own along, which
// asks the driver for tables that are NVIDIA's own.

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/error.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/managed_memory_resource.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tools/preload/borders/cuda_resource.hpp"

namespace {

using Resource = rmm::mr::device_memory_resource;

constexpr std::size_t kMiB = std::size_t{1} << 20U;

void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess)
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorName(code));
}

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("not so: ") + what);
}

struct Streams {
  std::array<cudaStream_t, 3> all{};
  Streams() {
    for (cudaStream_t& stream : all) {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams() {
    for (cudaStream_t stream : all) (void)cudaStreamDestroy(stream);
  }
};

/// Blocks of several sizes on several streams: each keeps its own bytes.
void use(Resource& resource) {
  const Streams streams;
  for (std::size_t round = 1; round <= 20; ++round) {
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t bytes = 1000 * round * (i + 1);
      const rmm::cuda_stream_view stream{streams.all.at(i % streams.all.size())};
      void* const block = resource.allocate(stream, bytes);
      check(cudaMemsetAsync(block, static_cast<int>(i), bytes, stream.value()), "cudaMemsetAsync");
      blocks.emplace_back(block, bytes);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const rmm::cuda_stream_view stream{streams.all.at(i % streams.all.size())};
      const auto [block, bytes] = blocks[i];
      std::vector<unsigned char> back(bytes);
      check(cudaMemcpyAsync(back.data(), block, bytes, cudaMemcpyDeviceToHost, stream.value()),
            "cudaMemcpyAsync");
      check(cudaStreamSynchronize(stream.value()), "cudaStreamSynchronize");
      require(back.front() == i && back.back() == i, "a block keeps its bytes");
      resource.deallocate(stream, block, bytes);
    }
  }
}

std::size_t free_now() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

void cuda() {
  rmm::mr::cuda_memory_resource resource;
  const std::size_t before = free_now();
  use(resource);
  require(free_now() == before, "all was given back");
}

void managed() {
  rmm::mr::managed_memory_resource resource;
  use(resource);
}

void pool() {
  rmm::mr::cuda_memory_resource base;
  rmm::mr::pool_memory_resource<Resource> resource(&base, 16 * kMiB, 512 * kMiB);
  use(resource);
}

void arena() {
  rmm::mr::cuda_memory_resource base;
  rmm::mr::arena_memory_resource<Resource> resource(&base, 256 * kMiB);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        use(resource);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  require(failed == 0, "every thread was served");
}

void binning() {
  rmm::mr::cuda_memory_resource base;
  rmm::mr::binning_memory_resource<Resource> resource(&base, 12, 16);
  use(resource);
}

void limited() {
  rmm::mr::cuda_memory_resource base;
  rmm::mr::limiting_resource_adaptor<Resource> resource(&base, 64 * kMiB);
  use(resource);
  try {
    (void)resource.allocate(rmm::cuda_stream_default, 65 * kMiB);
  } catch (const rmm::out_of_memory&) {
    return;
  }
  require(false, "more than the limit is refused");
}

void async_pool_of_its_own() {
  rmm::mr::cuda_async_memory_resource resource(std::nullopt, std::nullopt);
  use(resource);
}

void async_default_pool() {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
  rmm::mr::cuda_async_view_memory_resource resource(pool);
  use(resource);
}

void out_of_memory_and_recovery() {
  rmm::mr::cuda_memory_resource resource;
  const std::size_t size = free_now() / 4;
  std::vector<void*> kept;
  try {
    for (int i = 0; i < 1000; ++i) {
      kept.push_back(resource.allocate(rmm::cuda_stream_default, size));
    }
  } catch (const rmm::out_of_memory&) {
    require(kept.size() == 3 || kept.size() == 4, "nearly all could be had");
  }
  require(kept.size() < 1000, "memory ends");
  for (void* block : kept) resource.deallocate(rmm::cuda_stream_default, block, size);
  use(resource);
}

using Weir = weir::SwappedInResource<rmm::out_of_memory>;
static_assert(cuda::mr::resource_with<Weir, cuda::mr::device_accessible>);

struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require_weir() {
  if (weir_api_version() == 0) {
    throw Unavailable("a resource of Weir's; without Weir there is no memory for it");
  }
}

std::uint64_t allocated() {
  weir_memory now{};
  now.size = sizeof now;
  return weir_memory_info(0, &now) != 0 ? now.allocated : 0;
}

/// Weir's resource as RMM's current one: what RMM allocates is Weir's, in stream order.
void weir_resource() {
  require_weir();
  // begin swapped-in
  weir::SwappedInResource<rmm::out_of_memory> resource{weir::SwappedInMemory{0}};  // device 0
  rmm::mr::set_current_device_resource_ref(rmm::device_async_resource_ref{resource});
  // end swapped-in
  rmm::device_async_resource_ref current = rmm::mr::get_current_device_resource_ref();
  const Streams streams;
  void* const first = current.allocate(rmm::cuda_stream_view{streams.all[0]}, kMiB);
  require(allocated() >= kMiB, "the memory is Weir's");
  current.deallocate(rmm::cuda_stream_view{streams.all[0]}, first, kMiB);
  void* const again = current.allocate(rmm::cuda_stream_view{streams.all[0]}, kMiB);
  require(again == first, "its stream reuses a block at once");
  current.deallocate(rmm::cuda_stream_view{streams.all[0]}, again, kMiB);
  require(allocated() == 0, "all was given back");
  rmm::mr::reset_current_device_resource_ref();
}

void weir_resource_out_of_memory_and_recovery() {
  require_weir();
  Weir resource{weir::SwappedInMemory{0}};
  const std::size_t size = free_now() / 4;
  std::vector<void*> kept;
  try {
    for (int i = 0; i < 1000; ++i) {
      kept.push_back(resource.allocate({cudaStream_t{}}, size));
    }
  } catch (const rmm::out_of_memory& error) {
    require(std::string(error.what()).find("Weir has no ") != std::string::npos, "it says why");
    require(kept.size() == 3 || kept.size() == 4, "nearly all could be had");
  }
  require(kept.size() < 1000, "memory ends");
  for (void* block : kept) resource.deallocate({cudaStream_t{}}, block, size);
  resource.deallocate_sync(resource.allocate_sync(size), size);
}

const std::map<std::string, std::function<void()>>& features() {
  static const std::map<std::string, std::function<void()>> kFeatures{
      {"cuda_memory_resource", cuda},
      {"managed_memory_resource", managed},
      {"pool_memory_resource", pool},
      {"arena_memory_resource", arena},
      {"binning_memory_resource", binning},
      {"limiting_resource_adaptor", limited},
      {"cuda_async_memory_resource", async_pool_of_its_own},
      {"cuda_async_view_memory_resource", async_default_pool},
      {"out_of_memory_and_recovery", out_of_memory_and_recovery},
      {"weir_resource", weir_resource},
      {"weir_resource_out_of_memory", weir_resource_out_of_memory_and_recovery}};
  return kFeatures;
}

}  // namespace

// librmm.so's own of these ask the runtime that is linked into it. A program's functions come
// before a library's, so that these take their place.
std::pair<std::size_t, std::size_t> rmm::available_device_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {free, total};
}
rmm::cuda_device_id rmm::get_current_cuda_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return cuda_device_id{device};
}
void rmm::cuda_stream_view::synchronize() const {
  check(cudaStreamSynchronize(value()), "cudaStreamSynchronize");
}
void rmm::cuda_stream_view::synchronize_no_throw() const noexcept { synchronize(); }

int main(int count, char** words) {
  const std::string wanted = count == 2 ? words[1] : "";
  if (wanted == "--list") {
    for (const auto& [name, run] : features()) std::puts(name.c_str());
    return 0;
  }
  const auto found = features().find(wanted);
  if (found == features().end()) {
    std::fprintf(stderr, "usage: with_rmm --list | FEATURE\n");
    return 2;
  }
  try {
    found->second();
    return 0;
  } catch (const Unavailable& reason) {
    std::puts(reason.what());
    return 77;
  } catch (const std::exception& error) {
    std::puts(error.what());  // the last line of standard output is the reason
    return 1;
  }
}
