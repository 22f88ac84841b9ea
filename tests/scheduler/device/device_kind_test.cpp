// The table of device kinds and the names of devices.

#include "scheduler/device/device_kind.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"

namespace weir::testing {
namespace {

TEST(DeviceKind, EveryKindFindsItsFirstDeviceByItsName) {
  for (const KindOfDevice& kind : kinds_of_device()) {
    const auto found = find_device(kind.name);
    ASSERT_TRUE(found) << kind.name;
    EXPECT_EQ(*found, (DeviceId{kind.kind, 0})) << kind.name;
    EXPECT_EQ(&kind_of(*found), &kind) << kind.name;
    const std::string second = std::string(kind.name) + ":1";
    EXPECT_EQ(find_device(second).has_value(), kind.numbered) << second;
  }
}

TEST(DeviceKind, ANumberHasOneSpelling) {
  EXPECT_EQ(find_device("cuda:0"), (DeviceId{DeviceKind::kCuda, 0}));
  EXPECT_EQ(find_device("cuda:12"), (DeviceId{DeviceKind::kCuda, 12}));
  for (const char* name : {"cuda:", "cuda:01", "cuda:-1", "cuda:+1", "cuda:1x", "cuda:4294967296",
                           "cudas", "CUDA", "cpu:0", "auto", ""}) {
    EXPECT_FALSE(find_device(name)) << name;
  }
}

TEST(DeviceKind, AnUnknownNameIsRefusedWithThoseThatAreAllowed) {
  EXPECT_EQ(message_of<UsageError>([] { (void)parse_device_id("tpu"); }),
            "device 'tpu' is not known: cpu, cuda, cuda:N for GPU number N, or auto");
}

}  // namespace
}  // namespace weir::testing
