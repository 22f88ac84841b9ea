#pragma once

// CUDA calls that a test makes fail on purpose. A tool such as compute-sanitizer counts each as an
// error, so a test names them. On the stand-in driver a test fails if one of its calls is refused
// without being named (tests/standin/refusals.cpp); on a GPU names have no effect.

#include <gtest/gtest.h>

#include <string>

namespace weir::testing {

/// The mark of a test that expects `call` to return `code`.
[[nodiscard]] inline std::string refusal(const std::string& call, int code) {
  return "refused_" + call + "_" + std::to_string(code);
}
inline constexpr const char* kAnyRefusal = "refused_any";

/// Says that the running test makes calls of the driver function `call` (its base name, or "cudart"
/// for refusals by the runtime itself) return `code`. On the stand-in the test fails if none does.
inline void expect_refused(const std::string& call, int code) {
  ::testing::Test::RecordProperty(refusal(call, code), "");
}

/// Says that the running test is about failing calls. Only for suites of faults on the stand-in.
inline void expect_any_refused() { ::testing::Test::RecordProperty(kAnyRefusal, ""); }

}  // namespace weir::testing
