#include "tools/gpu_check/report/steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"

namespace weir::gpu_check {
namespace {

Step only(const std::string& line) {
  const std::vector<Step> steps = parse_steps(line + "\n");
  return steps.size() == 1 ? steps.front() : Step{};
}

TEST(GpuSteps, AreReadAsTheyAreWritten) {
  const std::vector<Step> steps =
      parse_steps("tests\t0\t12.5\t100\tweir-gpu test --a b\nmemcheck\t-\t0\t50\tnot found\n");
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].name, "tests");
  EXPECT_EQ(steps[0].command, "weir-gpu test --a b");
  EXPECT_DOUBLE_EQ(steps[0].seconds, 12.5);
  EXPECT_DOUBLE_EQ(steps[0].limit, 100);
  EXPECT_TRUE(steps[0].ok());
  EXPECT_EQ(steps[1].left_out, "not found");
  EXPECT_FALSE(steps[1].ran());
  EXPECT_FALSE(steps[1].ok());
}

TEST(GpuSteps, SayHowTheyEnded) {
  EXPECT_EQ(describe(only("a\t0\t1\t40\tb")), "ok");
  EXPECT_EQ(describe(only("a\t3\t1\t40\tb")), "failed (exit 3)");
  EXPECT_EQ(describe(only("a\t124\t40\t40\tb")), "stopped at its limit of 40 s");
  EXPECT_EQ(describe(only("a\t137\t45\t40\tb")), "stopped at its limit of 40 s");
  EXPECT_EQ(describe(only("a\t-\t0\t40\tno such tool")), "left out: no such tool");
}

TEST(GpuSteps, ALineThatIsNoneIsNamed) {
  for (const std::string line : {"tests", "tests\t0\t1\t40\t", "tests\tx\t1\t40\tb",
                                 "tests\t0\t\t40\tb", "tests\t0\t1\tnan\tb", "\t0\t1\t40\tb"}) {
    try {
      (void)parse_steps(line + "\n");
      ADD_FAILURE() << "taken for a step: " << line;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(line));
    }
  }
}

}  // namespace
}  // namespace weir::gpu_check
