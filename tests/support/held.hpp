#pragma once

// Tests that hold a stream of a device by a host function. They are in suites called ...WhileHeld,
// so that they can be left out by that name: under compute-sanitizer a launch may return only when
// its stream has run it, and behind a held stream it never would.

#include <gtest/gtest.h>

#include <string_view>

namespace weir::testing {

/// To be called where a stream is held. The running test fails if its suite's name does not say so.
inline void expect_named_while_held() {
  const std::string_view suite =
      ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  EXPECT_TRUE(suite.ends_with("WhileHeld")) << suite << " holds a stream: see support/held.hpp";
}

}  // namespace weir::testing
