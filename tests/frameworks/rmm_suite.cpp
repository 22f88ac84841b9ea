// RMM's own suite for resources, run over Weir's: rmm_suite.py compiles this with RMM's sources.
//
// SwappedIn is over the C symbols, so it runs under `weir run`; Library is over a pool.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/error.hpp>
#include <vector>

#include "allocator/adapt/pool_memory_cuda.hpp"
#include "allocator/memory/upstream_cuda.hpp"
#include "cccl_mr_ref_test_allocation.hpp"
#include "cccl_mr_ref_test_basic.hpp"
#include "cccl_mr_ref_test_mt.hpp"
#include "tools/preload/borders/cuda_resource.hpp"

namespace rmm::test {
namespace {

struct SwappedIn : ::testing::Test {
  weir::SwappedInResource<rmm::out_of_memory> resource{weir::SwappedInMemory{0}};
  rmm::device_async_resource_ref ref{resource};
  rmm::cuda_stream stream{};
};

struct Library : ::testing::Test {
  weir::CudaUpstream upstream{0};
  weir::CudaProgress progress{0};
  weir::CudaStreams streams{progress};
  weir::Pool pool{{upstream, progress}};
  weir::CudaResource<weir::PoolMemory, rmm::out_of_memory> resource{
      weir::PoolMemory{pool, streams}};
  rmm::device_async_resource_ref ref{resource};
  rmm::cuda_stream stream{};
};

INSTANTIATE_TYPED_TEST_SUITE_P(SwappedIn, CcclMrRefTest, SwappedIn);
INSTANTIATE_TYPED_TEST_SUITE_P(SwappedIn, CcclMrRefAllocationTest, SwappedIn);
INSTANTIATE_TYPED_TEST_SUITE_P(SwappedIn, CcclMrRefTestMT, SwappedIn);
INSTANTIATE_TYPED_TEST_SUITE_P(Library, CcclMrRefTest, Library);
INSTANTIATE_TYPED_TEST_SUITE_P(Library, CcclMrRefAllocationTest, Library);
INSTANTIATE_TYPED_TEST_SUITE_P(Library, CcclMrRefTestMT, Library);

/// RMM's buffers, which its suite for resources does not use.
void use_buffers(rmm::device_async_resource_ref ref, rmm::cuda_stream_view stream) {
  const std::vector<unsigned char> bytes(100'000, 7);
  rmm::device_buffer first{bytes.data(), bytes.size(), stream, ref};
  rmm::device_buffer second{first, stream, ref};
  second.resize(2'000'000, stream);
  first = rmm::device_buffer{};
  std::vector<unsigned char> back(bytes.size());
  RMM_CUDA_TRY(cudaMemcpyAsync(back.data(), second.data(), back.size(), cudaMemcpyDefault, stream));
  stream.synchronize();
  EXPECT_EQ(back, bytes);
  EXPECT_THROW(second.resize(std::size_t{1} << 40U, stream), rmm::out_of_memory);
  EXPECT_EQ(second.size(), 2'000'000U);
}

TEST_F(SwappedIn, BuffersKeepTheirBytes) {
  use_buffers(ref, rmm::cuda_stream_view{});
  use_buffers(ref, stream);
}

TEST_F(Library, BuffersKeepTheirBytes) {
  use_buffers(ref, rmm::cuda_stream_view{});
  use_buffers(ref, stream);
  EXPECT_EQ(pool.statistics().allocated.current, weir::Bytes{});
}

}  // namespace
}  // namespace rmm::test
