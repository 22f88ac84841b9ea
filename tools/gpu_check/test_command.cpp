#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tools/gpu_check/command.hpp"

namespace weir::gpu_check {

int run_tests(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc > 1) {
    std::fprintf(stderr, "%s: what is '%s'?\n", argv[0], argv[1]);
    return 2;
  }
  const int status = RUN_ALL_TESTS();
  // GoogleTest accepts a run without tests; a check must not.
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (!testing::GTEST_FLAG(list_tests) && tests.test_to_run_count() == 0) {
    std::fprintf(stderr, "%s: no test ran: %s\n", argv[0],
                 tests.total_test_count() == 0 ? "this program was built without any"
                                               : "no test matches the filter");
    return 2;
  }
  return status;
}

}  // namespace weir::gpu_check
