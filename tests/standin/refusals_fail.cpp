// Tests that must fail, each because of the refused calls that it names or does not name.

#include <cuda.h>
#include <gtest/gtest.h>

#include "tests/standin/standin.hpp"
#include "tests/support/refused.hpp"

namespace {

using weir::testing::expect_refused;

TEST(Fails, WithACallThatItDoesNotName) {
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(77), CUDA_ERROR_INVALID_VALUE);
}

TEST(Fails, WithACallThatReturnsAnotherCode) {
  expect_refused("cuMemRelease", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemRelease(77), CUDA_ERROR_INVALID_VALUE);
}

TEST(Fails, WithoutTheCallThatItNames) { expect_refused("cuMemRelease", CUDA_ERROR_INVALID_VALUE); }

/// What its suite is refused before the test is not what the test expects.
class FailsBefore : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(77), CUDA_ERROR_INVALID_VALUE);
  }
};

TEST_F(FailsBefore, WithACallOfTheSuiteThatTheTestNames) {
  expect_refused("cuMemRelease", CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
