#include <gtest/gtest.h>

#include "tools/gpu_check/facts/facts.hpp"

namespace weir::gpu_check {
namespace {

TEST(GpuFacts, MemoryThatOthersGaveBackMeanwhileIsLessThanNothing) {
  EXPECT_EQ(bytes_taken(mib(6).count, mib(2).count), "4 MiB");
  EXPECT_EQ(bytes_taken(mib(2).count, mib(6).count), "-4 MiB");
}

}  // namespace
}  // namespace weir::gpu_check
