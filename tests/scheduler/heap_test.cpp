// A warm training loop allocates nothing from the heap, on any thread.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "allocator/pool.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"
#include "support/failing_new.hpp"
#include "support/gate.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using testing::start_counting_new;
using testing::stop_counting_new;

/// A trainer's batch: inputs arrive on one stream, two others work, one small tensor stays a while,
/// temporaries are dropped.
void step(Scheduler& scheduler, const Tensor& weights, const std::vector<float>& host,
          std::array<Tensor, 8>& losses, std::size_t i) {
  const Batch batch = scheduler.begin_batch("train");
  const Tensor x = scheduler.copy_in(host, {host.size()}, "x");
  const Tensor y = scheduler.empty({host.size()}, "y");
  scheduler.submit("forward", {.reads = {x, weights}, .writes = {y}},
                   [](Stream&, Inputs in, Outputs out) {
                     for (std::size_t k = 0; k < 16; ++k) out[0][k] = in[0][k] + in[1][k];
                   });
  losses.at(i % losses.size()) = scheduler.empty({1}, "loss");
  scheduler.submit(
      "loss",
      {.reads = {y}, .writes = {losses.at(i % losses.size())}, .stream = StreamRole::kCompute2},
      [](Stream&, Inputs in, Outputs out) { out[0][0] = in[0].front(); });
  scheduler.submit("update", {.reads = {y, weights}, .writes = {weights}},
                   [](Stream&, Inputs in, Outputs out) { out[0][0] = in[0].front(); });
}

constexpr std::size_t kRunAhead = 4;

/// Makes as many batches as possible, behind a device that stands still on one stream. Then the
/// pool and every list have had their maximum size.
void fill_the_queue(Scheduler& scheduler, StreamRole late, auto& one_step) {
  testing::Gate gate;
  scheduler.submit("hold", {.stream = late}, [&gate](Stream&, Inputs, Outputs) { gate.pass(); });
  for (std::size_t i = 0; i < kRunAhead; ++i) one_step();
  gate.open();
  scheduler.wait_all();
}

class Submit : public ::testing::TestWithParam<PoolKind> {};

TEST_P(Submit, OnceWarmAllocatesNothingFromTheGeneralHeap) {
  Device device(std::make_unique<CpuDevice>(mib(64)));
  PoolOptions options;
  options.kind = GetParam();
  Pool pool(device.memory(), options);
  Scheduler scheduler(device, pool,
                      {.run_ahead = {.batches = kRunAhead, .time = std::chrono::nanoseconds(0)}});
  const std::vector<float> host(4096, 1.0F);
  const Tensor weights = scheduler.copy_in(host, {host.size()}, "weights");
  std::array<Tensor, 8> losses;
  auto one_step = [&, i = std::size_t{0}]() mutable {
    step(scheduler, weights, host, losses, i++);
  };
  one_step();  // an unknown kind would be blocked below
  scheduler.wait_all();
  for (int round = 0; round < 3; ++round) {
    for (const StreamRole role : kAllRoles) fill_the_queue(scheduler, role, one_step);
  }
  for (std::size_t i = 0; i < 2000; ++i) one_step();

  start_counting_new();
  for (std::size_t i = 0; i < 2000; ++i) one_step();
  scheduler.wait_all();
  EXPECT_EQ(stop_counting_new(), 0U);
}

/// Timing decides which operation of the list a submission gets. So none may allocate because it
/// has read less before.
TEST(SubmitHeap, AnOperationTakesNothingForUsesThatItHasNotHadBefore) {
  constexpr std::size_t kWaiting = 20;
  Device device(std::make_unique<CpuDevice>(mib(64)));
  Pool pool(device.memory(), PoolOptions{});
  Scheduler scheduler(device, pool);
  const std::vector<float> host(4096, 1.0F);
  const Tensor a = scheduler.copy_in(host, {host.size()}, "a");
  const Tensor b = scheduler.copy_in(host, {host.size()}, "b");
  // The pool allocates for the first use of a block on a second stream, and for the first block of
  // a size on a stream.
  const Tensor first = scheduler.empty({host.size()}, "first");
  scheduler.submit("first", {.reads = {a, b}, .writes = {first}}, [](Stream&, Inputs, Outputs) {});
  std::array<Tensor, kWaiting> made;
  const auto queue_up = [&](const auto& submit_one) {
    testing::Gate gate;
    scheduler.submit("hold", {}, [&gate](Stream&, Inputs, Outputs) { gate.pass(); });
    for (Tensor& tensor : made) submit_one(tensor);
    gate.open();
    scheduler.wait_all();
  };
  queue_up([&](Tensor& tensor) { tensor = scheduler.copy_in(host, {host.size()}, "made"); });
  made = {};  // their memory is the pool's
  queue_up([&](Tensor&) { scheduler.submit("nothing", {}, [](Stream&, Inputs, Outputs) {}); });

  start_counting_new();
  queue_up([&](Tensor& tensor) {
    tensor = scheduler.empty({host.size()}, "sum");
    scheduler.submit("sum", {.reads = {a, b}, .writes = {tensor}}, [](Stream&, Inputs, Outputs) {});
  });
  EXPECT_EQ(stop_counting_new(), 0U);
}

// Without unpooled: each of its requests goes to the upstream, which is the heap.
INSTANTIATE_TEST_SUITE_P(PoolKinds, Submit,
                         ::testing::Values(PoolKind::kNaive, PoolKind::kRound, PoolKind::kBestFit,
                                           PoolKind::kPaged),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

}  // namespace
}  // namespace weir
