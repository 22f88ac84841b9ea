#pragma once

// Calls of CUDA that a test makes fail on purpose. A tool such as compute-sanitizer counts each of
// them as an error, so a test says which they are. On the stand-in driver every test fails that has
// a call refused and does not say so (tests/standin/refusals.cpp); on a GPU nothing looks at it.

#include <gtest/gtest.h>

#include <string>

namespace weir::testing {

/// What a test is marked with that expects `call` to return `code`.
[[nodiscard]] inline std::string refusal(const std::string& call, int code) {
  return "refused_" + call + "_" + std::to_string(code);
}
inline constexpr const char* kAnyRefusal = "refused_any";

/// The running test makes calls of the driver function `call` (its base name, or "cudart" for what
/// the runtime refuses by itself) return `code`. On the stand-in it fails if none does.
inline void expect_refused(const std::string& call, int code) {
  ::testing::Test::RecordProperty(refusal(call, code), "");
}

/// The running test is about calls that fail. For suites of faults on the stand-in alone.
inline void expect_any_refused() { ::testing::Test::RecordProperty(kAnyRefusal, ""); }

}  // namespace weir::testing
