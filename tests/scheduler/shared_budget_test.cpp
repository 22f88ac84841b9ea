// Ranks that share a budget and meet in an all-reduce inside their batches: each waits for the
// other there, so neither may wait for the other's memory.

#include "allocator/share/shared_budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "scheduler/scheduler.hpp"
#include "support/options_of.hpp"
#include "support/share_fixture.hpp"

namespace weir {
namespace {

using testing::Child;
using testing::Common;
using testing::OwnShare;
using testing::Sampler;
using testing::Signal;

constexpr Bytes kBlock = mib(1);
constexpr int kRanks = 2;
/// A floor: a batch's input, sum and output, and the output of the one before, which stays live.
constexpr Bytes kFloorOfRank = kBlock * 4;
constexpr int kBatches = 60;

/// An all-reduce over memory that the ranks share. A rank that waits here uses the device.
class AllReduce {
 public:
  /// Returns when all ranks have attached: none can wait in a batch for one that has no floor yet.
  void await_all() noexcept {
    attached_.fetch_add(1);
    while (attached_.load() < kRanks) std::this_thread::yield();
  }
  /// Returns the sum of all ranks' values of this round.
  float sum(std::uint64_t round, float value) noexcept {
    std::atomic<float>& sum = sums_[round % sums_.size()];
    float before = sum.load();
    while (!sum.compare_exchange_weak(before, before + value)) continue;
    arrived_.fetch_add(1);
    while (arrived_.load() < kRanks * (round + 1)) std::this_thread::yield();
    return sum.load();
  }

 private:
  std::atomic<int> attached_{0};
  std::atomic<std::uint64_t> arrived_{0};
  std::array<std::atomic<float>, kBatches> sums_{};
};

/// Trains one rank. Returns 0 if every batch had the sum of all ranks.
int run_rank(const ShareOptions& options, Policy policy, AllReduce& reduce, int rank,
             std::atomic<std::uint64_t>& most_lease) {
  Device device = open_device("cpu", {.memory = mib(256)});
  Share share(options);
  reduce.await_all();
  Pool pool(device.memory(), testing::options_of(share.lease()));
  SharedBudget budget(share, pool);
  Scheduler scheduler(device, pool, {.policy = policy});
  const Shape shape{kBlock.count / sizeof(float)};
  Tensor last;
  for (int i = 0; i < kBatches; ++i) {
    const Batch batch = scheduler.begin_batch("train");
    const Tensor input = scheduler.empty(shape, "input");
    const Tensor sum = scheduler.empty(shape, "sum");
    const Tensor output = scheduler.empty(shape, "output");
    const auto round = static_cast<std::uint64_t>(i);
    scheduler.submit(
        "load", {.writes = {input}, .stream = StreamRole::kCopyIn},
        [rank](Stream&, Inputs, Outputs out) { out[0][0] = static_cast<float>(rank + 1); });
    scheduler.submit("all-reduce", {.reads = {input}, .writes = {sum}},
                     [&reduce, round](Stream&, Inputs in, Outputs out) {
                       out[0][0] = reduce.sum(round, in[0][0]);
                     });
    scheduler.submit("use", {.reads = {sum}, .writes = {output}},
                     [](Stream&, Inputs in, Outputs out) { out[0][0] = in[0][0]; });
    last = output;
    if (share.lease().count > most_lease.load()) most_lease.store(share.lease().count);
  }
  const float result = scheduler.read(last)[0];
  scheduler.wait_all();
  return result == 3.0F ? 0 : 1;
}

/// Runs both ranks; every sample of the leases is within the budget.
void run_ranks(const OwnShare& own, const ShareOptions& options, Policy policy, std::size_t slots,
               std::array<std::uint64_t, kRanks>& most) {
  const Common<AllReduce> reduce;
  const Common<std::array<std::atomic<std::uint64_t>, kRanks>> leases;
  const Common<std::atomic<int>> running;
  *running = kRanks;
  Sampler sampler(own.id, options.budget);
  const auto rank = [&](int number) {
    return [&, number] {
      const int code =
          run_rank(options, policy, *reduce, number, (*leases)[static_cast<std::size_t>(number)]);
      --*running;
      return code;
    };
  };
  Child one(rank(0));
  Child two(rank(1));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (*running != 0 && std::chrono::steady_clock::now() < until) {
    const auto now = sampler.look();
    if (!now) continue;
    ASSERT_LE(Sampler::sum(*now), options.budget);
    ASSERT_LE(now->used.size(), slots);
    std::this_thread::yield();
  }
  EXPECT_EQ(one.wait(), 0) << "a rank failed or hung";
  EXPECT_EQ(two.wait(), 0) << "a rank failed or hung";
  for (std::size_t i = 0; i < most.size(); ++i) most[i] = (*leases)[i];
}

ShareOptions options_of(const OwnShare& own, Bytes budget) {
  ShareOptions options = own.options(budget, kFloorOfRank);
  options.patience = std::chrono::seconds(60);
  return options;
}

TEST(SharedBudgetRanks, TwoThatMeetInACollectiveFinishWithSurplus) {
  for (const Policy policy : {Policy::kThrottled, Policy::kBackstop}) {
    const OwnShare own;
    std::array<std::uint64_t, kRanks> most{};
    run_ranks(own, options_of(own, kFloorOfRank * 4), policy, kRanks, most);
    EXPECT_GT(std::max(most[0], most[1]), kFloorOfRank.count)
        << "neither ever had more than its floor";
  }
}

TEST(SharedBudgetRanks, TwoThatMeetInACollectiveFinishWhereAllTheyAskIsRefused) {
  for (const Policy policy : {Policy::kThrottled, Policy::kBackstop, Policy::kBarrier}) {
    const OwnShare own;
    // A third process has all that is above the floors, and keeps it.
    Share third(own.options(kFloorOfRank * 5, kFloorOfRank));
    ASSERT_EQ(third.raise(kFloorOfRank * 3), kFloorOfRank * 3);
    std::array<std::uint64_t, kRanks> most{};
    run_ranks(own, options_of(own, kFloorOfRank * 5), policy, kRanks + 1, most);
    EXPECT_EQ(most[0], kFloorOfRank.count);
    EXPECT_EQ(most[1], kFloorOfRank.count);
    EXPECT_EQ(third.lease(), kFloorOfRank * 3);
  }
}

TEST(SharedBudgetRanks, TwoThatMeetInACollectiveFinishWhereOneIsRefused) {
  const OwnShare own;
  // The other's surplus of half a batch goes to whoever is first: the second asks in vain.
  std::array<std::uint64_t, kRanks> most{};
  run_ranks(own, options_of(own, kFloorOfRank * 2 + kBlock), Policy::kThrottled, kRanks, most);
  EXPECT_LE(most[0] + most[1], 2 * (kFloorOfRank + kBlock).count);
}

TEST(SharedBudgetRanks, AKilledRankLeavesItsLeaseToARankThatGoesOn) {
  const OwnShare own;
  const Signal holds;
  Child killed([&] {
    Share share(options_of(own, kFloorOfRank * 4));
    (void)share.raise(kFloorOfRank * 3);
    holds.tell();
    for (;;) pause();
    return 0;
  });
  holds.await();
  Device device = open_device("cpu", {.memory = mib(256)});
  Share share(options_of(own, kFloorOfRank * 4));
  Pool pool(device.memory(), testing::options_of(share.lease()));
  SharedBudget budget(share, pool);
  EXPECT_FALSE(budget.raise_to(kFloorOfRank * 2));
  killed.kill();
  EXPECT_TRUE(budget.raise_to(kFloorOfRank * 2));
  EXPECT_EQ(pool.budget(), kFloorOfRank * 2);
}

}  // namespace
}  // namespace weir
