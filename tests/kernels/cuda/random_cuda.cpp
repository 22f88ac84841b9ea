#include <numbers>

#include "allocator/base/error.hpp"
#include "kernels/elementwise/random.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::reference::Bounded;
using weir::testing::describe;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;
using weir::testing::Extent;
using weir::testing::extents;
using weir::testing::fresh_seed;

/// Number `index` of a stream by Box and Muller's formula in double; same_bits_test.cpp has the bound.
Bounded reference_number(std::uint64_t stream, std::uint64_t index) {
  const weir::PhiloxWords words = weir::normal_words(fresh_seed(), stream, index / 4);
  const bool back = index % 4 >= 2;
  const auto u = static_cast<double>(weir::unit_of_word(back ? words.z : words.x));
  const double r = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * 0x1p-32 * (back ? words.w : words.y);
  return {r * (index % 2 == 0 ? std::cos(angle) : std::sin(angle)), 3e-7 * r};
}

class FillNormalOnDevice : public weir::testing::GpuTest {};

TEST_F(FillNormalOnDevice, DrawsTheCpusBitsFromEveryFirstIndex) {
  std::uint64_t random_stream = 0;
  for (const Extent extent : extents()) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{6},
                                      std::uint64_t{UINT32_MAX} * 4 + 3}) {
      if (extent.size > 1025 && first % 4 == 2) continue;
      SCOPED_TRACE(describe(extent) + " from " + std::to_string(first));
      ++random_stream;
      DeviceArray<float> out(extent.size, extent.offset);
      weir::cuda::fill_normal(stream(), fresh_seed(), random_stream, out.span(), first);
      std::vector<float> expected(extent.size);
      weir::fill_normal(fresh_seed(), random_stream, expected, first);
      const std::vector<float> found = out.values();
      expect_same_bits(found, expected);
      EXPECT_TRUE(out.guards_hold());
      if (extent.size > 100003) continue;  // the CPU's own tests went further
      expect_within(found,
                    [&](std::size_t i) { return reference_number(random_stream, first + i); });
    }
  }
}

TEST_F(FillNormalOnDevice, DrawsTheLastNumbersOfAStreamAndRefusesToPassItsEnd) {
  constexpr std::uint64_t kFirst = UINT64_MAX - 7;
  DeviceArray<float> out(8);
  weir::cuda::fill_normal(stream(), fresh_seed(), 1, out.span().first(7), kFirst);
  std::vector<float> expected(7);
  weir::fill_normal(fresh_seed(), 1, expected, kFirst);
  std::vector<float> found = out.values();
  EXPECT_TRUE(std::isnan(found.back()));
  found.pop_back();
  expect_same_bits(found, expected);
  EXPECT_THROW(weir::cuda::fill_normal(stream(), fresh_seed(), 2, out.span(), kFirst),
               weir::UsageError);
  found = out.values();
  found.pop_back();
  expect_same_bits(found, expected);
}

}  // namespace
