#include <gtest/gtest.h>

#include <vector>

#include "rig.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite

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
  EXPECT_EQ(rig->admission().hard.count + rig->admission().soft.count, 0U);
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
