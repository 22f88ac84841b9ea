// A scheduler in a program whose heap is exhausted: each allocation of each call fails once. The
// call throws, nothing stays charged, and everything works afterwards.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "allocator/pool.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"
#include "support/failing_new.hpp"
#include "support/print.hpp"
#include "support/small_pages.hpp"

namespace weir {
namespace {

constexpr std::size_t kFloats = 4096;

/// A device, a pool and a scheduler that has settled one batch.
class Parts {
 public:
  Parts() { step(*scheduler); }

  /// A typical batch.
  static void step(Scheduler& scheduler) {
    const Batch batch = scheduler.begin_batch("a kind of a name that is long");
    const Tensor x = scheduler.copy_in(std::vector<float>(kFloats, 1.0F), {kFloats});
    const Tensor small = scheduler.empty({1});
    scheduler.submit("first", {.reads = {x}, .writes = {small}, .stream = StreamRole::kCompute2},
                     [](Stream&, Inputs in, Outputs out) { out[0][0] = in[0].front(); });
    const Tensor y = scheduler.empty({kFloats});
    scheduler.submit("sum", {.reads = {x, small}, .writes = {y}},
                     [](Stream&, Inputs in, Outputs out) { out[0][0] = in[0][0] + in[1][0]; });
    (void)scheduler.read(y);
  }
  void expect_nothing_charged() const {
    scheduler->wait_all();
    scheduler->wait_all();
    const AdmissionStatistics admission = scheduler->admission();
    EXPECT_EQ(admission.open, 0U);
    EXPECT_EQ(admission.submitted, 0U);
    EXPECT_EQ(admission.charged, Bytes{});
    const Statistics statistics = pool.statistics();
    EXPECT_EQ(statistics.allocated.current.count % SlabAllocator::kSlab.count, 0U)
        << "of small tensors alone";
  }

  Device device{std::make_unique<CpuDevice>(mib(8))};
  Pool pool{device.memory()};
  std::unique_ptr<Scheduler> scheduler = std::make_unique<Scheduler>(device, pool);
};

/// Calls `act` with its first allocation failing, then its second, until it succeeds; each time
/// after `prepare`, which does not fail.
void fail_each(
    const std::function<void(Parts&)>& act,
    const std::function<void(Parts&)>& prepare = [](Parts&) {}) {
  testing::for_each_allocation([&](std::uint64_t n) {
    Parts parts;
    prepare(parts);
    const bool struck = testing::fails_at(n, [&] { act(parts); });
    parts.expect_nothing_charged();
    Parts::step(*parts.scheduler);
    parts.expect_nothing_charged();
    return struck;
  });
}

TEST(NewFails, InABatch) {
  fail_each([](Parts& parts) { Parts::step(*parts.scheduler); });
}

TEST(NewFails, InTheWarningThatLiveMemoryLeavesNoRoomForABatch) {
  const auto made = [](Scheduler& scheduler, std::size_t kilo_floats) {
    Tensor tensor = scheduler.empty({kilo_floats, 1024});
    scheduler.submit("made", {.writes = {tensor}}, [](Stream&, Inputs, Outputs) {});
    return tensor;
  };
  Tensor live;
  fail_each([](Parts& parts) { const Batch batch = parts.scheduler->begin_batch("large"); },
            [&](Parts& parts) {
              {
                const Batch batch = parts.scheduler->begin_batch("large");
                (void)made(*parts.scheduler, 1024);
              }
              parts.scheduler->wait_all();
              live = made(*parts.scheduler, 1024);
              parts.scheduler->wait_all();
            });
}

TEST(NewFails, InBatchesOfManyKinds) {
  fail_each([](Parts& parts) {
    for (int i = 0; i < 8; ++i) {
      const Batch batch = parts.scheduler->begin_batch(std::to_string(i), {.hint = Bytes{}});
      const Tensor tensor = parts.scheduler->empty({16});
      parts.scheduler->submit("op", {.writes = {tensor}}, [](Stream&, Inputs, Outputs) {});
    }
  });
}

TEST(NewFails, WhereASchedulerIsMadeAndThePoolIsFreeForTheNext) {
  Parts parts;
  parts.scheduler.reset();
  testing::for_each_allocation([&](std::uint64_t n) {
    return testing::fails_at(
        n, [&] { parts.scheduler = std::make_unique<Scheduler>(parts.device, parts.pool); });
  });
  Parts::step(*parts.scheduler);
}

TEST(SmallPages, GiveUpPagesWithoutMemory) {
  testing::SmallPages source(mib(1));
  std::vector<Page> pages(256);
  ASSERT_EQ(source.create(pages), pages.size());
  testing::fail_each_new();
  source.destroy(pages);
  EXPECT_FALSE(testing::stop_failing_new());
  EXPECT_EQ(source.create(pages), pages.size());
  source.destroy(pages);
}

}  // namespace
}  // namespace weir
