#include "tools/gpu_check/report/programs.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "tools/preload/report/summary.hpp"

namespace weir::gpu_check {
namespace {

TEST(GpuPrograms, ReadTheSummaryThatTheSwapInWrites) {
  preload::DeviceSummary device;
  device.budget = mib(64);
  device.pool.reserved = {mib(1), mib(48)};
  device.pool.waits = 3;
  device.pool.waited = std::chrono::milliseconds(1500);
  device.served = mib(96);
  device.paced = {2, std::chrono::milliseconds(500)};
  device.batches = {4, std::chrono::milliseconds(1000)};
  device.passed = {{"arrays", {}, 1, mib(32), true},
                   {"modules", {}, 1, mib(7), true},
                   {"contexts", {}, 1, mib(1), true},
                   {"host", {}, 1, mib(500), false}};
  preload::Summary summary;
  summary.devices = {device, device};

  const SwapInFigures figures = read_summary(nlohmann::json::parse(preload::to_json(summary)));
  constexpr double kMib = 1 << 20;
  EXPECT_EQ(figures.served_bytes, 2 * 96 * kMib);
  EXPECT_EQ(figures.passed_bytes, 2 * 32 * kMib);
  EXPECT_EQ(figures.other_bytes, 2 * 8 * kMib);
  EXPECT_EQ(figures.peak_reserved_bytes, 2 * 48 * kMib);
  EXPECT_EQ(figures.budget_bytes, 2 * 64 * kMib);
  EXPECT_EQ(figures.waits, 6U);
  EXPECT_EQ(figures.held_back, 12U);
  EXPECT_DOUBLE_EQ(figures.waited_seconds, 6);
  EXPECT_EQ(figures.served_share(), 0.75);
}

TEST(GpuPrograms, ASummaryOfNoDeviceIsNone) {
  EXPECT_THROW((void)read_summary(nlohmann::json::parse(preload::to_json({}))), Error);
}

TEST(GpuPrograms, EachSetupHasItsCounterpartWithoutWeir) {
  EXPECT_EQ(without_weir("weir"), "plain");
  EXPECT_EQ(without_weir("weir_pluggable"), "plain");
  EXPECT_EQ(without_weir("weir_async"), "plain_async");
  EXPECT_TRUE(with_weir("weir"));
  EXPECT_FALSE(with_weir("plain_async"));
  EXPECT_EQ(setup_title("weir_new"), "weir_new");
}

}  // namespace
}  // namespace weir::gpu_check
