#pragma once

// Tests that hold a stream of a device by a host function. Their suites are called ...WhileHeld, so
// that a filter can exclude them: under compute-sanitizer a launch may return only when its stream
// has run it, which a held stream never does.

#include <gtest/gtest.h>

#include <string_view>

namespace weir::testing {

/// Call it where a stream is held. Fails the running test if its suite's name does not say so.
inline void expect_named_while_held() {
  const std::string_view suite =
      ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  EXPECT_TRUE(suite.ends_with("WhileHeld")) << suite << " holds a stream: see support/held.hpp";
}

}  // namespace weir::testing
