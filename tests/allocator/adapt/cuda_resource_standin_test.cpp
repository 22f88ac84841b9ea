// Pools by CUDA streams, and the resource of cuda::mr over them, on the stand-in driver: the points
// of RMM's suite for resources, which tests/frameworks/rmm_suite.py runs itself, and what becomes
// of streams.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/adapt/pool_memory_cuda.hpp"
#include "allocator/memory/upstream_cuda.hpp"
#include "allocator/pool_fixture.hpp"
#include "standin/standin.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/random_seed.hpp"
#include "support/refused.hpp"
#include "tools/preload/borders/cuda_resource.hpp"

namespace {

// As docs/using-the-library.md shows it.
TEST(CudaResourceOfThePage, ServesAStream) {
  // begin pool
  weir::CudaUpstream upstream{0};
  weir::CudaProgress progress{0};
  weir::CudaStreams streams{progress};
  weir::Pool pool{{upstream, progress}};
  weir::CudaResource<weir::PoolMemory> resource{weir::PoolMemory{pool, streams}};
  // end pool
  void* const block = resource.allocate({cudaStreamLegacy}, 1000);
  EXPECT_EQ(pool.statistics().requested.current, weir::Bytes{1000});
  resource.deallocate({cudaStreamLegacy}, block, 1000);
}

}  // namespace

namespace weir {
namespace {

using Resource = CudaResource<PoolMemory>;

cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  return stream;
}

/// Also after a while in which it could have ended its work.
bool is_busy(cudaStream_t stream) {
  testing::give_others_a_chance();
  const bool busy = cudaStreamQuery(stream) == cudaErrorNotReady;
  (void)cudaGetLastError();  // which a query leaves behind
  return busy;
}

struct CudaResourceTest : ::testing::Test {
  CudaResourceTest() { weir_standin_release(weir_standin_all_streams()); }
  ~CudaResourceTest() override {
    weir_standin_release(weir_standin_all_streams());
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "a stale error was left behind";
  }

  CudaUpstream upstream{0, mib(64)};
  CudaProgress progress{0};
  CudaStreams streams{progress};
  Pool pool{{upstream, progress}, testing::options_of(mib(64), PoolKind::kBestFit)};
  PoolMemory memory{pool, streams};
  Resource resource{memory};
  cudaStream_t stream = make_stream();
};

/// A program's way to a block: by a stream, or at once for all.
struct By {
  bool sync = false;
  cudaStream_t stream = nullptr;
  [[nodiscard]] void* take(Resource& resource, std::size_t bytes) const {
    return sync ? resource.allocate_sync(bytes) : resource.allocate({stream}, bytes);
  }
  void give(Resource& resource, void* block, std::size_t bytes) const {
    sync ? resource.deallocate_sync(block, bytes) : resource.deallocate({stream}, block, bytes);
  }
};

/// Blocks of random sizes come and go. Each keeps what its stream wrote.
void come_and_go(Resource& resource, By by, std::uint64_t seed) {
  struct Block {
    unsigned char* begin;
    std::size_t bytes;
    int value;
  };
  std::mt19937_64 random{seed};
  std::vector<Block> held;
  for (int i = 0; i < 200; ++i) {
    if (held.empty() || (held.size() < 20 && random() % 100 < 53)) {
      const std::size_t bytes = 1 + random() % 300'000;
      auto* const begin = static_cast<unsigned char*>(by.take(resource, bytes));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(begin) % Resource::kAlignment, 0U);
      const int value = static_cast<int>(random() % 200);
      ASSERT_EQ(cudaMemsetAsync(begin, value, bytes, by.stream), cudaSuccess);
      held.push_back({begin, bytes, value});
      continue;
    }
    std::swap(held[random() % held.size()], held.back());
    const Block block = held.back();
    held.pop_back();
    std::array<unsigned char, 2> ends{};
    ASSERT_EQ(cudaMemcpyAsync(ends.data(), block.begin, 1, cudaMemcpyDeviceToHost, by.stream),
              cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(&ends[1], block.begin + block.bytes - 1, 1, cudaMemcpyDeviceToHost,
                              by.stream),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(by.stream), cudaSuccess);
    ASSERT_THAT(ends, ::testing::Each(block.value));
    by.give(resource, block.begin, block.bytes);
  }
  for (const Block& block : held) {
    ASSERT_EQ(cudaStreamSynchronize(by.stream), cudaSuccess);
    by.give(resource, block.begin, block.bytes);
  }
}

TEST_F(CudaResourceTest, NothingIsNull) {
  for (const By by : {By{.sync = true}, By{}, By{.stream = stream}}) {
    void* const nothing = by.take(resource, 0);
    EXPECT_EQ(nothing, nullptr);
    by.give(resource, nothing, 0);
  }
}

TEST_F(CudaResourceTest, TooMuchIsTheErrorThatTheProgramNamed) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  CudaResource<PoolMemory, Mine> mine{memory};
  try {
    (void)mine.allocate({stream}, std::size_t{1} << 50U);
    FAIL() << "more than there is was given";
  } catch (const Mine& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("Weir has no 1125899906842624 bytes on device "
                                                    "0: out of memory"));
  }
  EXPECT_THROW((void)resource.allocate_sync(mib(65).count), NoDeviceMemory);
  EXPECT_THROW((void)resource.allocate({cudaStream_t{}}, mib(65).count), std::bad_alloc);
  come_and_go(resource, {.stream = stream}, 1);
}

TEST_F(CudaResourceTest, AlignsAsAskedAndSaysWhatItCannot) {
  for (const std::size_t alignment : {1U, 256U, 512U}) {
    void* const block = resource.allocate({stream}, 100, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    resource.deallocate({stream}, block, 100, alignment);
  }
  EXPECT_THROW((void)resource.allocate({stream}, 100, 1024), std::invalid_argument);
  EXPECT_THROW((void)resource.allocate_sync(100, 96), std::invalid_argument);
}

TEST_F(CudaResourceTest, CopiesAreEqualAndOthersAreNot) {
  const Resource copy = resource;
  EXPECT_TRUE(copy == resource);
  Pool other{{upstream, progress}, testing::options_of(mib(1))};
  EXPECT_FALSE((Resource{PoolMemory{other, streams}} == resource));
}

TEST_F(CudaResourceTest, BlocksOfFourThreadsKeepTheirBytes) {
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  for (const By by :
       {By{.sync = true}, By{}, By{.stream = cudaStreamPerThread}, By{.stream = stream}}) {
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] { come_and_go(resource, by, seed + i); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{});
}

TEST_F(CudaResourceTest, AnotherStreamGetsABlockOnlyBehindTheWorkBeforeItsFree) {
  for (cudaStream_t busy : {cudaStream_t{}, cudaStreamPerThread, stream}) {
    cudaStream_t other = make_stream();
    void* const block = resource.allocate({busy}, mib(40).count);
    weir_standin_hold(busy);
    ASSERT_EQ(cudaMemsetAsync(block, 1, mib(40).count, busy), cudaSuccess);
    resource.deallocate({busy}, block, mib(40).count);
    void* const again = resource.allocate({other}, mib(40).count);  // there is room for one
    EXPECT_EQ(again, block);
    ASSERT_EQ(cudaMemsetAsync(again, 2, mib(40).count, other), cudaSuccess);
    EXPECT_TRUE(is_busy(other)) << "it waits on the device";
    weir_standin_release(busy);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(*static_cast<unsigned char*>(again), 2);
    resource.deallocate({other}, again, mib(40).count);
    EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  }
}

TEST_F(CudaResourceTest, AThreadsDefaultStreamWaitsForThatOfTheThreadThatFreed) {
  std::promise<void> done;
  void* const block = resource.allocate({cudaStreamPerThread}, 1000);
  weir_standin_hold(cudaStreamPerThread);
  ASSERT_EQ(cudaMemsetAsync(block, 1, 1000, cudaStreamPerThread), cudaSuccess);
  resource.deallocate({cudaStreamPerThread}, block, 1000);
  std::thread other([&] {
    void* const again = resource.allocate({cudaStreamPerThread}, 1000);
    EXPECT_EQ(again, block) << "one stream to the pool";
    EXPECT_EQ(cudaMemsetAsync(again, 2, 1000, cudaStreamPerThread), cudaSuccess);
    EXPECT_TRUE(is_busy(cudaStreamPerThread)) << "it waits for the first thread's";
    resource.deallocate({cudaStreamPerThread}, again, 1000);
    done.set_value();
  });
  done.get_future().wait();
  weir_standin_release(cudaStreamPerThread);
  other.join();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*static_cast<unsigned char*>(block), 2) << "written last";
}

TEST_F(CudaResourceTest, MemoryForAllStreamsIsBehindTheWorkOfItsLastUser) {
  void* const block = resource.allocate({stream}, mib(40).count);
  weir_standin_hold(stream);
  ASSERT_EQ(cudaMemsetAsync(block, 1, mib(40).count, stream), cudaSuccess);
  resource.deallocate({stream}, block, mib(40).count);
  std::thread release([&] {
    while (weir_standin_pending(stream) == 0) std::this_thread::yield();
    weir_standin_release(stream);
  });
  void* const again = resource.allocate_sync(mib(40).count);
  release.join();
  EXPECT_EQ(again, block);
  EXPECT_EQ(*static_cast<unsigned char*>(again), 1) << "the work before its free is done";
  resource.deallocate_sync(again, mib(40).count);
}

TEST_F(CudaResourceTest, AStreamMayGoOnceItsBlocksAreFreed) {
  for (const bool home : {true, false}) {
    cudaStream_t gone = make_stream();
    void* const block = resource.allocate({home ? gone : stream}, 1000);
    weir_standin_hold(gone);
    ASSERT_EQ(cudaMemsetAsync(block, 1, 1000, gone), cudaSuccess);
    resource.deallocate({gone}, block, 1000);
    weir_standin_release(gone);
    EXPECT_EQ(cudaStreamDestroy(gone), cudaSuccess);
    const testing::LogCapture log;
    pool.poll();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    pool.trim();
    EXPECT_EQ(pool.statistics().reserved.current, Bytes{}) << "the device has passed it all";
    EXPECT_THAT(log.containing(""), ::testing::IsEmpty());
  }
}

TEST_F(CudaResourceTest, ManyStreamsThatGoAreForgotten) {
  for (int i = 0; i < 500; ++i) {
    cudaStream_t gone = make_stream();
    resource.deallocate({gone}, resource.allocate({gone}, 1000), 1000);
    EXPECT_EQ(cudaStreamDestroy(gone), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // a stream is kept while it has work
  }
  EXPECT_LE(progress.streams(), 130U);
}

TEST_F(CudaResourceTest, AStreamThatIsNoneIsAnErrorOfCuda) {
  testing::expect_refused("cuStreamGetId", CUDA_ERROR_INVALID_HANDLE);
  cudaStream_t gone = make_stream();
  EXPECT_EQ(cudaStreamDestroy(gone), cudaSuccess);
  EXPECT_THROW((void)resource.allocate({gone}, 1000), CudaError);
  const testing::LogCapture log;
  void* const block = resource.allocate({stream}, 1000);
  resource.deallocate({gone}, block, 1000);
  EXPECT_EQ(log.containing("a block is not freed: cudaStreamGetId").size(), 1U);
  resource.deallocate({stream}, block, 1000);
}

}  // namespace
}  // namespace weir
