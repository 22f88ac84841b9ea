#include "allocator/base/error.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "support/print.hpp"

namespace weir {
namespace {

TEST(Error, HasTheExitCodeOfItsKind) {
  EXPECT_EQ(exit_code(UsageError("u")), 2);
  EXPECT_EQ(exit_code(OutOfMemory("o")), 3);
  EXPECT_EQ(exit_code(Cancelled("c")), 130);
  EXPECT_EQ(exit_code(Error("e")), 1);
  EXPECT_EQ(exit_code(std::runtime_error("r")), 1);
}

}  // namespace
}  // namespace weir
