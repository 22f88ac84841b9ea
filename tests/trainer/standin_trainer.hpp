#pragma once

// What tests of training on the stand-in driver share.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "standin/standin.hpp"

namespace weir::testing {

/// A test after which the driver has nothing left.
class StandinTrainer : public ::testing::Test {
 protected:
  StandinTrainer() { weir_standin_reset(); }
  ~StandinTrainer() override {
    const WeirStandinLive live = weir_standin_live();
    EXPECT_EQ(live.streams, 0U);
    EXPECT_EQ(live.events, 0U);
    EXPECT_EQ(live.device_blocks, 0U);
    EXPECT_EQ(live.host_blocks, 0U);
  }
};

/// Norm of the difference over the norm of `expected`.
[[nodiscard]] inline double relative_difference(const std::vector<std::vector<float>>& actual,
                                                const std::vector<std::vector<float>>& expected) {
  double difference = 0;
  double norm = 0;
  EXPECT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].size(), expected[i].size());
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      difference += std::pow(double{actual[i][j]} - double{expected[i][j]}, 2);
      norm += std::pow(double{expected[i][j]}, 2);
    }
  }
  return std::sqrt(difference / norm);
}

}  // namespace weir::testing
