// Producers on threads of their own, each delayed at every lock, wait and notification. Every
// batch fits in the budget, so nobody may hang, run out of memory or need a grace, which is an hour
// here. Where one needs another's batch, the grace is short, and the end may be out of memory.
//
// WEIR_TEST_SCHEDULES sets how many, WEIR_TEST_SEED the first one.

#include "delays.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

#include "../run_batch.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite

constexpr std::uint64_t kPages = 64;  // the budget
constexpr std::uint64_t kProducersOfEach = 3;

Blocks any_blocks(std::minstd_rand& random) {
  static const std::vector<Blocks> kAll{{8}, {16, 8}, {16, 16}, {32, 8}, {32, 16, 16}, {64}};
  return kAll[random() % kAll.size()];
}

/// How the threads of one schedule came out.
struct Ends {
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> out_of_memory{0};
  std::atomic<std::uint64_t> cancelled{0};
};

struct Plan {
  std::vector<Blocks> batches;
  std::uint32_t weight = 1;
  std::stop_token stop{};
  std::function<void()> while_open{};  ///< called once the batch holds its memory
};

std::future<void> produce(Rig& rig, Plan plan, Ends& ends) {
  return std::async(std::launch::async, [&rig, plan = std::move(plan), &ends] {
    for (const Blocks& blocks : plan.batches) {
      try {
        run_batch(rig, blocks, {.hint = sum_of(blocks), .stop = plan.stop, .weight = plan.weight},
                  plan.while_open);
        ++ends.batches;
      } catch (const OutOfMemory&) {
        ++ends.out_of_memory;
      } catch (const Cancelled&) {
        ++ends.cancelled;
      }
    }
  });
}

std::uint64_t schedules() {
  constexpr std::uint64_t kDefault = 60;
  const char* text = std::getenv("WEIR_TEST_SCHEDULES");
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : kDefault;
}

/// A number of batches; with so little time that a producer with two batches queued is passed over;
/// or one that adapts.
RunAhead any_target(std::minstd_rand& random) {
  const std::uint64_t batches = 1 + random() % 3;
  const std::uint64_t choice = random() % 3;
  if (choice == 0) return {};
  return {.batches = batches, .time = std::chrono::nanoseconds(choice == 1 ? 0 : 1)};
}

/// Runs `some` schedules on one scheduler; the first of a seed's numbers shapes each.
void run_fitting(std::uint64_t seed, std::uint64_t some, Ends& ends) {
  std::minstd_rand random(static_cast<unsigned>(seed));
  Rig rig(
      {.budget = pages(kPages), .run_ahead = any_target(random), .grace = std::chrono::hours(1)});
  for (std::uint64_t i = 0; i < some; ++i) {
    const Delays delays(seed + i);
    std::stop_source stop;
    std::vector<std::future<void>> producers;
    for (std::size_t p = 0; p < kProducersOfEach; ++p) {
      Plan plan{.batches = {any_blocks(random), any_blocks(random)}};
      plan.weight = static_cast<std::uint32_t>(1 + random() % 2);
      if (p == 0 && i % 2 == 0) plan.stop = stop.get_token();
      producers.push_back(produce(rig, std::move(plan), ends));
    }
    for (std::uint64_t yields = random() % 64; yields > 0; --yields) std::this_thread::yield();
    stop.request_stop();
    for (auto& producer : producers) producer.get();
    rig->wait_all();
    const AdmissionStatistics end = rig->admission();
    ASSERT_EQ(end.charged, Bytes{});
    ASSERT_EQ(end.open + end.submitted, 0U);
    ASSERT_EQ(end.forced, 0U);
  }
}

TEST(Delays, NobodyHangsOrRunsOutInAnyScheduleOfThreads) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  const std::uint64_t before = Delays::count();
  Ends ends;
  for (std::uint64_t i = 0; i < schedules() && !HasFatalFailure(); i += 20) {
    run_fitting(seed + i, std::min<std::uint64_t>(20, schedules() - i), ends);
  }
  EXPECT_EQ(ends.out_of_memory, 0U);
  EXPECT_EQ(ends.batches + ends.cancelled, schedules() * 2 * kProducersOfEach);
  EXPECT_GT(ends.cancelled, 0U);
  EXPECT_GT(Delays::count() - before, schedules() * 10) << "nobody was delayed";
}

TEST(Delays, AProducerThatNeedsAnothersBatchGoesOnByForceInAnyScheduleOfThreads) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  Ends ends;
  std::uint64_t forced = 0;
  const std::uint64_t count = std::max<std::uint64_t>(schedules() / 10, 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    Rig rig({.budget = pages(kPages), .grace = std::chrono::milliseconds(2)});
    const Delays delays(seed + i);
    std::promise<void> second_is_done;
    // Both together do not fit: the second is forced in, and ends for want of memory or not.
    Plan first{.batches = {{32}}};
    first.while_open = [done = second_is_done.get_future().share()] { done.wait(); };
    std::vector<std::future<void>> producers;
    producers.push_back(produce(rig, std::move(first), ends));
    producers.push_back(produce(rig, {.batches = {{16}}}, ends));
    produce(rig, {.batches = {{32, 16}}}, ends).get();
    second_is_done.set_value();
    for (auto& producer : producers) producer.get();
    rig->wait_all();
    ASSERT_EQ(rig->admission().charged, Bytes{});
    forced += rig->admission().forced;
  }
  EXPECT_EQ(ends.batches + ends.out_of_memory, count * 3);
  EXPECT_GT(forced, 0U);
}

}  // namespace
}  // namespace weir
