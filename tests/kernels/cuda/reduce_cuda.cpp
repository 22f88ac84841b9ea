#include "allocator/base/error.hpp"
#include "kernels/sums/reduce.hpp"
#include "kernels/sums/sums_cuda.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::reference::Bounded;
using weir::reference::kUnitRoundoff;
using weir::testing::describe;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;
using weir::testing::Extent;
using weir::testing::extents;

/// reduce.hpp's bound, `more` roundings of a term included.
double roundings(std::size_t count, double more) {
  const double passes = count <= (1U << 10U) ? 1 : (count <= (1U << 20U) ? 2 : 3);
  return 1.01 * kUnitRoundoff * (37 * passes + more);
}

class ReduceOnDevice : public weir::testing::GpuTest {};

TEST_F(ReduceOnDevice, SumHasTheCpusBitsAndErrsWithinItsBound) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const std::vector<float> x = random(extent.size);
    const DeviceArray<float> device_x(x, extent.offset);
    DeviceArray<float> total(1);
    weir::cuda::sum(stream(), device_x.view(), total.span(), workspace());
    expect_same_bits(total.values(), {weir::sum(x)});
    Bounded exact;
    for (const float value : x) {
      exact.value += static_cast<double>(value);
      exact.error += std::abs(static_cast<double>(value)) * roundings(x.size(), 0);
    }
    expect_within(total.values(), [&](std::size_t) { return exact; });
    EXPECT_TRUE(total.guards_hold());
    expect_same_bits(device_x.values(), x);
  }
}

TEST_F(ReduceOnDevice, SquaredDistanceHasTheCpusBitsAndErrsWithinItsBound) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const std::vector<float> x = random(extent.size);
    const std::vector<float> y = random(extent.size);
    const DeviceArray<float> device_x(x, extent.offset);
    const DeviceArray<float> device_y(y, 0);
    DeviceArray<float> total(1);
    weir::cuda::squared_distance(stream(), device_x.view(), device_y.view(), total.span(),
                                 workspace());
    expect_same_bits(total.values(), {weir::squared_distance(x, y)});
    Bounded exact;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double difference = static_cast<double>(x[i]) - static_cast<double>(y[i]);
      exact.value += difference * difference;
      exact.error += difference * difference * roundings(x.size(), 3);
    }
    expect_within(total.values(), [&](std::size_t) { return exact; });
  }
}

TEST_F(ReduceOnDevice, RepeatedSumsHaveTheSameBits) {
  const DeviceArray<float> x(random(100003));
  DeviceArray<float> first(1);
  weir::cuda::sum(stream(), x.view(), first.span(), workspace());
  for (int i = 0; i < 5; ++i) {
    DeviceArray<float> again(1);
    weir::cuda::sum(stream(), x.view(), again.span(), workspace());
    expect_same_bits(again.values(), first.values());
  }
}

TEST_F(ReduceOnDevice, NanAndInfinityAreKept) {
  std::vector<float> x = random(3000);
  x[2999] = std::numeric_limits<float>::infinity();
  DeviceArray<float> total(1);
  weir::cuda::sum(stream(), DeviceArray<float>(x).view(), total.span(), workspace());
  EXPECT_EQ(total.values()[0], std::numeric_limits<float>::infinity());
  x[1] = weir::reference::kNan;
  weir::cuda::sum(stream(), DeviceArray<float>(x).view(), total.span(), workspace());
  EXPECT_TRUE(std::isnan(total.values()[0]));
}

// Sums of more than 2^29 terms, with a scratch memory that fills up earlier.
TEST_F(ReduceOnDevice, TilesThatExceedTheScratchMemoryAreAddedInTheSameOrder) {
  constexpr std::size_t kScratch = 4 * weir::kSumTile;
  constexpr std::size_t kPiece = weir::kSumTile;
  for (const std::size_t count : {1U, 1024U, 1025U, 2048U, 2049U, 4096U, 5000U, 100000U}) {
    SCOPED_TRACE(count);
    const std::vector<float> terms = random(count);
    const DeviceArray<float> device_terms(terms);
    DeviceArray<float> scratch(kScratch);
    DeviceArray<float> out(1);
    weir::cuda::TileSums sums("test", stream(), scratch.span());
    ASSERT_EQ(sums.capacity() % kPiece, 0U);
    for (std::size_t begin = 0; begin < count; begin += kPiece) {
      const std::size_t length = std::min(kPiece, count - begin);
      weir::check_cuda(cudaMemcpyAsync(sums.next(length), device_terms.view().data() + begin,
                                       length * sizeof(float), cudaMemcpyDefault, stream()),
                       "cudaMemcpyAsync");
    }
    sums.finish({.divisor = 3.0F, .factor = 0.5F}, out.span().data());
    expect_same_bits(out.values(), {0.5F * (weir::sum(terms) / 3.0F)});
    EXPECT_TRUE(scratch.guards_hold());
  }
}

TEST_F(ReduceOnDevice, BadSizesAndWorkspacesAreRefusedAndNothingChanges) {
  const DeviceArray<float> x(random(8));
  DeviceArray<float> total(1);
  DeviceArray<float> two(2);
  const auto refused = [&](auto a, auto b, auto out, auto scratch) {
    EXPECT_THROW(weir::cuda::squared_distance(stream(), a, b, out, scratch), weir::UsageError);
  };
  EXPECT_THROW(weir::cuda::sum(stream(), x.view(), two.span(), workspace()), weir::UsageError);
  const std::span<float> small = workspace().first(workspace().size() - 1);
  EXPECT_THROW(weir::cuda::sum(stream(), x.view(), total.span(), small), weir::UsageError);
  refused(x.view(), x.view().first(7), total.span(), workspace());
  refused(x.view(), x.view(), two.span(), workspace());
  refused(x.view(), x.view(), total.span(), small);
  DeviceArray<float> shifted(weir::cuda::kWorkspaceElements, 4);
  refused(x.view(), x.view(), total.span(), shifted.span());
  EXPECT_TRUE(std::isnan(total.values()[0]));
  EXPECT_TRUE(std::isnan(two.values()[0]));
}

}  // namespace
