// The stand-in of the management library reports the driver's devices.

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/standin/fixture.hpp"

namespace {

using weir::standin::testing::ok;

using FromBus = int (*)(const char*, void**);

FromBus from_bus() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library == nullptr
             ? nullptr
             : reinterpret_cast<FromBus>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
}

TEST(StandInNvml, FindsADeviceByItsBusInEachFormOfTheDomain) {
  const FromBus find = from_bus();
  ASSERT_NE(find, nullptr);
  ok(cuInit(0));
  std::array<char, 16> bus{};
  ok(cuDeviceGetPCIBusId(bus.data(), bus.size(), 0));
  void* short_form = nullptr;
  void* long_form = nullptr;
  EXPECT_EQ(find(bus.data(), &short_form), 0) << bus.data();
  EXPECT_EQ(find((std::string("0000") + bus.data()).c_str(), &long_form), 0);
  EXPECT_NE(short_form, nullptr);
  EXPECT_EQ(short_form, long_form);
  EXPECT_NE(find("0001:00:00.0", &short_form), 0);
  EXPECT_NE(find("nonsense", &short_form), 0);
}

}  // namespace
