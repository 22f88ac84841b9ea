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

TEST(SmallTensors, ThatAwaitTheDeviceAreWaitedForBeforeARequestFails) {
  for (const Bytes size : {SlabAllocator::kLargest, SlabAllocator::kSlab}) {
    Rig rig({.budget = SlabAllocator::kSlab, .policy = Policy::kBackstop});
    Gate& gate = rig.hold(StreamRole::kCompute2);
    leave_small_tensors_awaiting(rig);
    auto held = std::async(std::launch::async, [&] { return rig.filled(size, 2); });
    rig.backend.await_waits(1);
    gate.open();
    EXPECT_THAT(rig->read(held.get()), Each(2));
  }
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

// A training loop that keeps its losses on the device until the end.
TEST(Scalars, HundredThousandKeptOnTheDeviceStayUnder64MiBWithoutAStall) {
  constexpr std::size_t kLosses = 100'000;
  constexpr std::size_t kPerBatch = 100;
  Rig rig({.budget = mib(128), .run_ahead = {.batches = std::nullopt}});
  std::vector<Tensor> losses;
  losses.reserve(kLosses);
  while (losses.size() < kLosses) {
    // A hint, so that memory alone could stall: the first batch of a kind is charged all of it.
    const Batch batch = rig->begin_batch("train", {.hint = kib(64)});
    for (std::size_t i = 0; i < kPerBatch; ++i) {
      losses.push_back(rig->empty({1}, "loss"));
      rig->submit("loss", {.writes = {losses.back()}},
                  fill(static_cast<float>(losses.size() % 64)));
    }
  }
  EXPECT_EQ(rig->admission().budget.count + rig->admission().soft.count, 0U);
  EXPECT_EQ(rig.pool.statistics().waits, 0U);
  EXPECT_EQ(rig.backend.waits(), 0U) << "nothing held the host back at all";

  const Tensor mean = rig->empty({1}, "mean");
  rig->submit("mean", {.reads = losses, .writes = {mean}, .stream = StreamRole::kCompute2},
              [](Stream&, Inputs in, Outputs out) {
                double sum = 0;
                for (std::size_t i = 0; i < in.size(); ++i) sum += in[i].front();
                out[0][0] = static_cast<float>(sum / static_cast<double>(in.size()));
              });
  double sum = 0;
  for (std::size_t i = 1; i <= kLosses; ++i) sum += static_cast<double>(i % 64);
  EXPECT_EQ(rig->read(mean).front(), static_cast<float>(sum / kLosses));
  EXPECT_LT(rig.pool.statistics().reserved.peak, mib(64));
  EXPECT_EQ(rig.pool.statistics().waits, 0U);

  losses.clear();
  expect_idle(rig);
  EXPECT_LT(rig->memory_info().allocated, mib(1)) << "their blocks went back to the pool";
}

}  // namespace
}  // namespace weir
