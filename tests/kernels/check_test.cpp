#include "kernels/parts/check.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"

namespace {

constexpr weir::Operand kOperand{"some_kernel", "w"};

TEST(RequireMatrix, TakesRowsTimesColumnsAndNothingElse) {
  EXPECT_NO_THROW(weir::require_matrix(kOperand, 6, 2, 3));
  EXPECT_NO_THROW(weir::require_matrix(kOperand, 0, 0, 3));
  EXPECT_NO_THROW(weir::require_matrix(kOperand, 0, 3, 0));
  EXPECT_THROW(weir::require_matrix(kOperand, 5, 2, 3), weir::UsageError);
  EXPECT_THROW(weir::require_matrix(kOperand, 7, 2, 3), weir::UsageError);
}

TEST(RequireMatrix, RefusesAProductThatWrapsToTheRightSize) {
  constexpr std::size_t kHalf = std::size_t{1} << 32U;
  EXPECT_THROW(weir::require_matrix(kOperand, 0, kHalf, kHalf), weir::UsageError);
}

TEST(RequireElements, NamesTheKernelTheOperandAndBothSizes) {
  try {
    weir::require_elements(kOperand, 3, 4);
    FAIL() << "no error";
  } catch (const weir::UsageError& error) {
    EXPECT_STREQ(error.what(), "some_kernel: w has 3 elements, expected 4");
  }
}

}  // namespace
