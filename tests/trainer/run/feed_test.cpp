#include "trainer/run/feed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "scheduler/device/cpu_device.hpp"
#include "support/manual_progress.hpp"

namespace weir::testing {
namespace {

constexpr BatchShape kFedShape{.rows = 4, .inputs = 3, .targets = 2};

TEST(CopiedFeed, ABufferIsUsedAgainOnlyAfterTheLaterOfItsTwoCopies) {
  Device device{std::make_unique<CpuDevice>(mib(8))};
  Pool pool{device.memory()};
  MappedUpstream host_memory(mib(16));
  ManualProgress progress;  // the test controls what the reader learns of the copies
  constexpr std::size_t kBatches = 6;
  std::vector<const float*> buffers(4 * kBatches);  // of each batch, by its number
  const BatchSource source = [&](std::uint64_t index, std::span<float> inputs, std::span<float>) {
    buffers.at(index) = inputs.data();
  };
  Reader reader({host_memory, progress}, kFedShape, source, 0);
  Scheduler scheduler(device, pool);
  CopiedFeed feed(scheduler, reader);
  Point inputs_copied{};
  Point targets_copied{};
  {
    const Batch batch = scheduler.begin_batch("train");
    feed.next();
    const Tensor inputs = feed.inputs();
    const Tensor targets = feed.targets();
    inputs_copied = scheduler.written(inputs);
    targets_copied = scheduler.written(targets);
  }
  ASSERT_EQ(inputs_copied.stream, targets_copied.stream);
  ASSERT_LT(inputs_copied.sequence, targets_copied.sequence);
  progress.pass(inputs_copied);
  // The reader makes two batches ahead: those from the fourth on are made after this.
  for (std::size_t i = 1; i < kBatches; ++i) feed.next();
  EXPECT_EQ(std::count(buffers.begin(), buffers.begin() + kBatches, buffers.front()), 1);
  progress.pass(targets_copied);
  for (std::size_t i = 0; i < kBatches; ++i) feed.next();
  EXPECT_EQ(std::count(buffers.begin(), buffers.begin() + 2 * kBatches, buffers.front()), 2);
}

}  // namespace
}  // namespace weir::testing
