// Pages of a GPU on the stand-in driver: the calls, and the state after a failed one.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "allocator/memory/page_source_cuda.hpp"
#include "allocator/memory/upstream_cuda.hpp"
#include "standin/standin.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"
#include "support/print.hpp"
#include "support/refused.hpp"

namespace weir {
namespace {

using testing::LogCapture;
using testing::message_of;

constexpr Bytes kPage = mib(2);

class CudaPagesTest : public ::testing::Test {
 protected:
  CudaPagesTest() {
    weir_standin_reset();
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    upstream = std::make_unique<CudaUpstream>(0, kPage * 16);
  }
  ~CudaPagesTest() override {
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "a stale error was left behind";
    upstream.reset();
    weir_standin_reset();
  }
  /// A source with `count` pages and a range of 16.
  void open(std::size_t count) {
    source = upstream->pages();
    ASSERT_NE(source, nullptr);
    range = source->reserve(kPage * 16);
    ASSERT_NE(range, nullptr);
    pages.resize(count);
    ASSERT_EQ(source->create(pages), count);
  }
  [[nodiscard]] Mapping at(std::size_t n, std::size_t page) const {
    return {static_cast<std::byte*>(range) + n * kPage.count, pages.at(page)};
  }
  std::size_t map(const std::vector<Mapping>& mappings) { return source->map(mappings); }
  std::size_t unmap(const std::vector<Mapping>& mappings) { return source->unmap(mappings); }
  static void fail(const char* call, std::uint64_t nth, CUresult code) {
    weir_standin_fail(call, nth, static_cast<int>(code), kWeirStandinOnce);
  }
  /// Releases everything, and checks that the driver has nothing left.
  void close() {
    source->destroy(pages);
    source->unreserve(range, kPage * 16);
    const WeirStandinLive live = weir_standin_live();
    EXPECT_EQ(live.mappings, 0U);
    EXPECT_EQ(live.physical, 0U);
    EXPECT_EQ(live.reservations, 0U);
    EXPECT_EQ(upstream->used(), Bytes{});
  }

  LogCapture log;
  std::unique_ptr<CudaUpstream> upstream;
  PageSource* source = nullptr;
  void* range = nullptr;
  std::vector<Page> pages;
};

TEST_F(CudaPagesTest, AreNoneWhereTheDeviceOrTheDriverHasNoneOfThem) {
  weir_standin_set_pages_supported(0);
  EXPECT_EQ(upstream->pages(), nullptr);
  weir_standin_set_pages_supported(1);
  EXPECT_EQ(upstream->pages(), nullptr) << "what it said once holds";
  for (const char* call : {"cuDeviceGetAttribute", "cuMemGetAllocationGranularity"}) {
    CudaUpstream another(0, kPage);
    fail(call, 1, CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(another.pages(), nullptr) << call;
  }
}

TEST_F(CudaPagesTest, GiveAccessOnceToWhatLiesSideBySide) {
  open(9);
  weir_standin_clear_counters();
  std::vector<Mapping> mappings;
  for (std::size_t i = 0; i < 8; ++i) mappings.push_back(at(i, i));
  mappings.push_back(at(12, 8));
  EXPECT_EQ(map(mappings), 9U);
  EXPECT_EQ(weir_standin_calls("cuMemMap"), 9U);
  EXPECT_EQ(weir_standin_calls("cuMemSetAccess"), 2U);
  EXPECT_EQ(unmap(mappings), 9U);
  EXPECT_EQ(weir_standin_calls("cuMemUnmap"), 9U) << "only what was mapped in one piece";
  close();
}

TEST_F(CudaPagesTest, StopWhereTheDeviceIsFull) {
  testing::expect_refused("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
  open(2);
  fail("cuMemCreate", 3, CUDA_ERROR_OUT_OF_MEMORY);
  std::vector<Page> more(5);
  EXPECT_EQ(source->create(more), 2U);
  EXPECT_EQ(upstream->used(), kPage * 4);
  source->destroy(std::span(more).first(2));
  weir_standin_set_memory(3 * kPage.count);
  EXPECT_EQ(source->create(more), 1U) << "the device is smaller than the capacity";
  source->destroy(std::span(more).first(1));
  close();
}

TEST_F(CudaPagesTest, AreNotMadeWhereTheDriverFails) {
  open(2);
  fail("cuMemCreate", 3, CUDA_ERROR_INVALID_VALUE);
  std::vector<Page> more(5);
  EXPECT_EQ(message_of<CudaError>([&] { (void)source->create(more); }),
            "cuMemCreate failed: cudaErrorInvalidValue (1): invalid argument (2 MiB)");
  EXPECT_EQ(weir_standin_live().physical, 2U);
  EXPECT_EQ(upstream->used(), kPage * 2);
  close();
}

TEST_F(CudaPagesTest, AreMappedUpToTheOneThatFails) {
  open(4);
  fail("cuMemMap", 3, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(map({at(0, 0), at(1, 1), at(2, 2), at(3, 3)}), 2U);
  EXPECT_EQ(weir_standin_live().mappings, 2U);
  EXPECT_EQ(cudaMemset(range, 1, 2 * kPage.count), cudaSuccess) << "those that are can be used";
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(map({at(2, 2), at(3, 3)}), 2U);
  fail("cuMemUnmap", 2, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(unmap({at(0, 0), at(1, 1), at(2, 2), at(3, 3)}), 1U);
  EXPECT_FALSE(log.containing("cuMemUnmap failed: cudaErrorInvalidValue").empty());
  EXPECT_EQ(unmap({at(1, 1), at(2, 2), at(3, 3)}), 3U);
  close();
}

TEST_F(CudaPagesTest, WithoutAccessAreAsGoodAsNotMapped) {
  open(4);
  fail("cuMemSetAccess", 2, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map({at(0, 0), at(1, 1), at(5, 2), at(6, 3)}), 2U);
  EXPECT_FALSE(log.containing("cuMemSetAccess failed").empty());
  EXPECT_EQ(weir_standin_live().mappings, 2U);
  EXPECT_EQ(unmap({at(0, 0), at(1, 1)}), 2U);
  close();
}

TEST_F(CudaPagesTest, ThatCannotBeGivenBackStayInTheAccounting) {
  open(3);
  fail("cuMemRelease", 2, CUDA_ERROR_INVALID_VALUE);
  source->destroy(pages);
  EXPECT_EQ(upstream->used(), kPage);
  EXPECT_EQ(weir_standin_live().physical, 1U);
  EXPECT_FALSE(log.containing("cuMemRelease failed").empty());
  source->destroy({&pages[1], 1});
  pages.clear();
  close();
}

TEST_F(CudaPagesTest, AddressesThatAreRefusedAreNone) {
  open(0);
  fail("cuMemAddressReserve", 1, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(source->reserve(kPage), nullptr);
  fail("cuMemAddressFree", 1, CUDA_ERROR_INVALID_VALUE);
  source->unreserve(range, kPage * 16);
  EXPECT_FALSE(log.containing("cuMemAddressFree failed").empty());
  close();
}

TEST_F(CudaPagesTest, KeepTheThreadsOwnDeviceAndOthersCaptures) {
  weir_standin_set_devices(2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  open(2);
  EXPECT_EQ(map({at(0, 0), at(1, 1)}), 2U);
  EXPECT_EQ(unmap({at(0, 0), at(1, 1)}), 2U);
  EXPECT_EQ(weir_standin_used(0), 2 * kPage.count);
  close();
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 1);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "the capture was broken";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace weir
