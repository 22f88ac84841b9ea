// The device that a name selects. A GPU's answer is unknown here: only that it is of one kind or
// the other.

#include <gtest/gtest.h>

#include <algorithm>

#include "allocator/base/error.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/cuda.hpp"
#include "support/message_of.hpp"
#include "support/print.hpp"
#include "trainer/run/settings.hpp"

namespace weir::testing {
namespace {

TEST(DeviceChoice, TakesTheNamesOfDevicesAndAuto) {
  for (const char* name : {"cpu", "auto", "cuda", "cuda:0", "cuda:12"}) {
    EXPECT_EQ(parse_device("--device", name), name);
  }
  for (const char* name : {"", "tpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda0", "cuda:1x"}) {
    const std::string message =
        message_of<UsageError>([&] { (void)parse_device("--device", name); });
    EXPECT_EQ(message, "--device='" + std::string(name) +
                           "' is not allowed: cpu, cuda, cuda:N for GPU number N, or auto");
  }
}

TEST(DeviceChoice, AutoBecomesWhatAnswersAndTheSourceSaysWhy) {
  const DefaultDevice found = default_device();
  EXPECT_EQ(found.name, find_cuda().devices > 0 ? "cuda" : "cpu");
  EXPECT_FALSE(found.why.empty());
  const Setting<std::string> chosen = choose_device(Setting<std::string>::by_default("auto"));
  EXPECT_EQ(chosen.value, found.name);
  const std::string before = found.name == "cuda" ? "default: " : "default: no GPU answers: ";
  ASSERT_TRUE(chosen.source.starts_with(before)) << chosen.source;
  const std::string reason = chosen.source.substr(before.size());
  EXPECT_FALSE(reason.empty());
  EXPECT_TRUE(found.why.starts_with(reason)) << reason << " is not of " << found.why;
  EXPECT_EQ(reason.find("or use the device cpu"), std::string::npos) << "no advice: " << reason;
  EXPECT_EQ(std::ranges::count(reason, '('), std::ranges::count(reason, ')')) << reason;
  EXPECT_TRUE(choose_device({"auto", "--device"}).source.starts_with("--device: "));
}

TEST(DeviceChoice, TheCpuStaysAsItWasAskedFor) {
  const Setting<std::string> chosen = choose_device({"cpu", "--device"});
  EXPECT_EQ(chosen.value, "cpu");
  EXPECT_EQ(chosen.source, "--device");
  EXPECT_EQ(most_device_memory("cpu"), machine_memory());
  EXPECT_EQ(default_device_memory("cpu"), default_cpu_memory());
}

TEST(DeviceChoice, AGpuThatIsNotThereIsRefusedInOneLine) {
  const std::string message = message_of<UsageError>([] {
    (void)choose_device({"cuda:4096", "--device"});
  });
  EXPECT_TRUE(message.find("cuda:4096") != std::string::npos ||
              message.find("this build has no CUDA") != std::string::npos)
      << message;
  EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  EXPECT_THROW((void)most_device_memory("cuda:4096"), UsageError);
  EXPECT_THROW((void)default_device_memory("cuda:4096"), UsageError);
}

}  // namespace
}  // namespace weir::testing
