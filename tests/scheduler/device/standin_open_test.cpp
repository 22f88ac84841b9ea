// Opening a GPU: by name, with part of its memory, and the errors.

#include <gtest/gtest.h>

#include <string>

#include "allocator/base/error.hpp"
#include "allocator/pool.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/standin_fixture.hpp"
#include "support/message_of.hpp"
#include "support/refused.hpp"

namespace weir {
namespace {

using testing::LogCapture;
using testing::message_of;

class OpenGpu : public testing::StandinTest {};

std::string refused(const char* name) {
  return message_of<UsageError>([name] { (void)open_device(name); });
}

TEST_F(OpenGpu, ByNameAndNumber) {
  weir_standin_set_devices(2);
  weir_standin_set_memory(gib(3).count);
  EXPECT_EQ(open_device("cuda").name(), "cuda:0");
  EXPECT_EQ(open_device("cuda:1").name(), "cuda:1");
  EXPECT_EQ(open_device("auto").name(), "cuda:0");
  EXPECT_EQ(open_device("cpu").name(), "cpu");
  EXPECT_EQ(open_device("cuda:1").total_memory(), gib(3));
  EXPECT_EQ(open_device("cuda", {.memory = mib(5)}).total_memory(), mib(5));
  EXPECT_EQ(find_cuda().devices, 2);
  EXPECT_FALSE(find_cuda().name.empty());
  EXPECT_EQ(default_device().name, "cuda");
}

TEST_F(OpenGpu, KeepsTheThreadsOwnDevice) {
  weir_standin_set_devices(2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  Device device = open_device("cuda:0");
  void* const block = device.memory().upstream.allocate(kib(4));
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 1);
  EXPECT_EQ(weir_standin_used(0), kib(4).count);
  EXPECT_EQ(weir_standin_used(1), 0U);
  device.memory().upstream.deallocate(block, kib(4));
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(OpenGpu, RefusesANumberThatDoesNotExist) {
  EXPECT_EQ(refused("cuda:1"), "device cuda:1 does not exist: the one GPU here is cuda:0");
  weir_standin_set_devices(3);
  EXPECT_EQ(refused("cuda:3"), "device cuda:3 does not exist: there are cuda:0 to cuda:2");
}

TEST_F(OpenGpu, SaysThatThereIsNoGpu) {
  testing::expect_refused("cudart", cudaErrorNoDevice);
  weir_standin_set_devices(0);
  EXPECT_EQ(refused("cuda"),
            "device cuda:0: the driver sees no GPU: plug one in, or use the device cpu");
  EXPECT_EQ(default_device().name, "cpu");
  EXPECT_EQ(default_device().why, find_cuda().why);
}

TEST_F(OpenGpu, RefusesMoreMemoryThanTheGpuHas) {
  weir_standin_set_memory(mib(64).count);
  EXPECT_EQ(message_of<UsageError>([] { (void)open_device("cuda", {.memory = mib(65)}); }),
            "device memory 65 MiB is not allowed: at most what GPU 0 has, 64 MiB");
}

PoolOptions budget(BudgetRequest request) {
  PoolOptions options;
  options.budget = request;
  return options;
}

TEST_F(OpenGpu, ABudgetIsAShareOfAllItsMemory) {
  weir_standin_set_memory(mib(100).count);
  Device device = open_device("cuda");
  EXPECT_EQ(Pool(device.memory(), budget({.percent = 80})).budget(), mib(80));
  EXPECT_EQ(Pool(device.memory()).budget(), mib(95));
}

TEST_F(OpenGpu, ABudgetThatIsNotFreeIsRefusedAndTheDefaultTakesWhatIs) {
  weir_standin_set_memory(mib(100).count);
  Device device = open_device("cuda");
  void* others = nullptr;
  ASSERT_EQ(cudaMalloc(&others, mib(60).count), cudaSuccess);
  EXPECT_EQ(message_of<UsageError>([&] { Pool(device.memory(), budget({.percent = 80})); }),
            "budget (program) 80 MiB does not fit: only 40 MiB of the device's 100 MiB are free: "
            "stop other programs on the device, or set a budget of at most the free memory");
  const LogCapture log;
  EXPECT_EQ(Pool(device.memory()).budget(), mib(40));
  EXPECT_FALSE(log.containing("lowered from 95 MiB to what is free, 40 MiB").empty());
  EXPECT_EQ(cudaFree(others), cudaSuccess);
}

}  // namespace
}  // namespace weir
