#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace weir::testing {

/// Expects each of these parts somewhere in `text`.
inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing from\n" << text;
  }
}

/// Returns what a child did that must have succeeded.
[[nodiscard]] inline Finished succeeded(Finished child) {
  EXPECT_EQ(child.exit_code, 0) << child.err;
  return child;
}

}  // namespace weir::testing
