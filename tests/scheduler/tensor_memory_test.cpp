// Small tensors share blocks of the pool. No request may fail that the memory of freed small
// tensors could serve.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "rig.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;

/// Small tensors that fill one block, freed while a second stream still uses them.
void leave_small_tensors_awaiting(Rig& rig) {
  std::vector<Tensor> small;
  for (std::uint64_t i = 0; i < SlabAllocator::kSlab.count / SlabAllocator::kLargest.count; ++i) {
    small.push_back(rig.filled(SlabAllocator::kLargest, 1));
  }
  for (const Tensor& tensor : small) {
    rig->submit("use", {.reads = {tensor}, .stream = StreamRole::kCompute2}, nothing());
  }
}

TEST(SmallTensors, CostTheirSlotAndNotABlock) {
  Rig rig;
  std::vector<Tensor> small;
  for (int i = 0; i < 1000; ++i) small.push_back(rig.filled({4}, 1));
  EXPECT_EQ(rig.pool.statistics().allocated.current, SlabAllocator::kSlab) << "1000 of 64 bytes";
}

TEST(SmallTensors, AFreedOneIsItsOwnStreamsAtOnce) {
  Rig rig;
  rig.hold(StreamRole::kCompute);
  for (int i = 0; i < 100'000; ++i) (void)rig.filled({4}, 1);
  EXPECT_EQ(rig.pool.statistics().reserved.current, SlabAllocator::kSlab);
  EXPECT_EQ(rig.backend.waits(), 0U);
}

TEST(SmallTensors, ThatAwaitTheDeviceAreWaitedForBeforeASmallRequestFails) {
  Rig rig({.budget = SlabAllocator::kSlab, .policy = Policy::kBackstop});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  leave_small_tensors_awaiting(rig);
  auto held =
      std::async(std::launch::async, [&] { return rig.filled(SlabAllocator::kLargest, 2); });
  rig.backend.await_waits(1);
  gate.open();
  EXPECT_THAT(rig->read(held.get()), Each(2));
}

TEST(SmallTensors, ThatAwaitTheDeviceAreWaitedForBeforeALargeRequestFails) {
  Rig rig({.budget = SlabAllocator::kSlab, .policy = Policy::kBackstop});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  leave_small_tensors_awaiting(rig);
  auto held = std::async(std::launch::async, [&] { return rig.filled(SlabAllocator::kSlab, 2); });
  rig.backend.await_waits(1);
  gate.open();
  EXPECT_THAT(rig->read(held.get()), Each(2));
}

TEST(SmallTensors, WithoutAnyLeftGiveTheirBlocksToALargeRequest) {
  for (const Policy policy : kAllPolicies) {
    Rig rig({.budget = SlabAllocator::kSlab * 4, .policy = policy});
    for (const StreamRole role : kAllRoles) (void)rig.filled({4}, 1, role);
    settle(rig);
    EXPECT_THAT(rig->read(rig.filled(SlabAllocator::kSlab * 4, 2)), Each(2)) << to_string(policy);
    expect_statistics_agree(rig);
  }
}

TEST(SmallTensors, StillInUseKeepTheirBlock) {
  Rig rig({.budget = SlabAllocator::kSlab});
  const Tensor small = rig.filled({4}, 1);
  EXPECT_THROW((void)rig.filled(SlabAllocator::kSlab, 2), OutOfMemory);
  EXPECT_THAT(rig->read(small), Each(1));
}

TEST(SmallTensors, AFreedOneServesAnAllocationThatWaitsForOpenBatchesAtOnce) {
  for (const Bytes size : {SlabAllocator::kLargest, SlabAllocator::kSlab}) {
    Rig rig({.budget = SlabAllocator::kSlab, .grace = std::chrono::minutes(10)});
    const Batch older = rig->begin_batch("older", {.hint = Bytes{}});
    std::vector<Tensor> small;
    for (std::uint64_t i = 0; i < SlabAllocator::kSlab.count / SlabAllocator::kLargest.count; ++i) {
      small.push_back(rig.filled(SlabAllocator::kLargest, 1));
    }
    auto younger = std::async(std::launch::async, [&] {
      const Batch batch = rig->begin_batch("younger", {.hint = Bytes{}});
      EXPECT_THAT(rig->read(rig.filled(size, 2)), Each(2));
    });
    while (rig->admission().sleeps == 0) std::this_thread::yield();
    small.clear();
    younger.get();
  }
}

TEST(SmallTensors, UnboundedDoesNotWaitForThem) {
  Rig rig({.budget = SlabAllocator::kSlab, .policy = Policy::kUnbounded});
  rig.hold(StreamRole::kCompute2);
  leave_small_tensors_awaiting(rig);
  EXPECT_THROW((void)rig.filled(SlabAllocator::kLargest, 2), OutOfMemory);
  EXPECT_EQ(rig.backend.waits(), 0U);
}

}  // namespace
}  // namespace weir
