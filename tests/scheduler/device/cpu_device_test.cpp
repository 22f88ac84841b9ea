#include "scheduler/device/cpu_device.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

TEST(OpenDevice, KnowsTheCpuAndNothingElse) {
  Device device = open_device("cpu", {.memory = mib(3)});
  EXPECT_EQ(device.total_memory(), mib(3));
  EXPECT_EQ(device.name(), "cpu");
  EXPECT_THROW((void)open_device("gpu"), UsageError);
  EXPECT_THROW((void)open_device("cpu", {.memory = {UINT64_MAX}}), UsageError);
  EXPECT_EQ(open_device("cpu").total_memory(), default_cpu_memory());
}

}  // namespace
}  // namespace weir
