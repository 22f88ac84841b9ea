// The BLAS of the host: its memory, its threads, and what a product says that it refuses.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "support/message_of.hpp"
#include "support/sanitized.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::GemmShape;
using weir::reference::random_numbers;
using weir::reference::unwritten;

TEST(HostBlas, NamesTheMatrixThatDoesNotFit) {
  std::vector<float> c(4);
  EXPECT_EQ(weir::testing::message_of<weir::UsageError>([&] {
              weir::gemm(weir::Precision::kFloat32, {.m = 2, .n = 2, .k = 1}, std::vector<float>(2),
                         std::vector<float>(3), c);
            }),
            "gemm: b has 3 elements, expected 1 x 2");
}

class BlasThreads : public testing::Test {
 protected:
  void TearDown() override { weir::set_blas_threads(before_); }

 private:
  int before_ = weir::blas_threads();
};

#if WEIR_TEST_SANITIZED == 0  // a sanitizer needs address space of its own
TEST(BlasMemory, IsReservedOnceAndLaterCallsNeedNone) {
  weir::reserve_blas_memory();
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  ASSERT_NE(pages, 0U);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit full{pages * static_cast<std::size_t>(getpagesize()) + weir::mib(32).count,
                    before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &full), 0);
  EXPECT_NO_THROW(weir::reserve_blas_memory());
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}
#endif

TEST_F(BlasThreads, AreAsManyAsWereSet) {
  weir::set_blas_threads(2);
  EXPECT_EQ(weir::blas_threads(), 2);
  weir::set_blas_threads(1);
  EXPECT_EQ(weir::blas_threads(), 1);
}

TEST_F(BlasThreads, BelowOneAreRefused) {
  weir::set_blas_threads(1);
  EXPECT_THROW(weir::set_blas_threads(0), weir::UsageError);
  EXPECT_THROW(weir::set_blas_threads(-1), weir::UsageError);
  EXPECT_EQ(weir::blas_threads(), 1);
}

TEST_F(BlasThreads, OneGivesTheSameBitsEachTimeAndAtEachAlignment) {
  weir::set_blas_threads(1);
  const GemmShape shape{.m = 129, .n = 67, .k = 511};
  const std::vector<float> a = random_numbers(shape.m * shape.k, 1);
  const std::vector<float> b = random_numbers(shape.k * shape.n, 2);
  std::vector<float> first = unwritten(shape.m * shape.n);
  weir::gemm(weir::Precision::kFloat32, shape, a, b, first);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::vector<float> moved(offset, 0.0F);
    moved.insert(moved.end(), a.begin(), a.end());
    std::vector<float> again = unwritten(first.size());
    weir::gemm(weir::Precision::kFloat32, shape, std::span<const float>(moved).subspan(offset), b,
               again);
    EXPECT_EQ(again, first) << offset;
  }
}

}  // namespace
