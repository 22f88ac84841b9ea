#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>

#include "allocator/pool.hpp"
#include "scheduler/device/device.hpp"
#include "support/environment.hpp"
#include "support/gate.hpp"
#include "support/message_of.hpp"
#include "trainer/wide/wide_ranks.hpp"

namespace weir::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(Buckets, AreFilledInOrderUpToTheLimit) {
  const std::vector<Bytes> sizes{{4}, {4}, {3}, {9}, {1}, {7}};
  EXPECT_THAT(make_buckets(sizes, {8}), ElementsAre(2, 1, 1, 2));  // 9 is more: a bucket alone
  EXPECT_THAT(make_buckets(sizes, {1}), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(make_buckets(sizes, {28}), ElementsAre(6));
  EXPECT_THAT(make_buckets({}, {8}), ElementsAre());
}

TEST(Buckets, TakeTheirSizeFromMxnetsVariable) {
  const char* const name = "MXNET_KVSTORE_REDUCE_BUCKET_SIZE";
  EXPECT_EQ(bucket_setting(environment_of({})).value, kDefaultBucket);
  const Setting<Bytes> set = bucket_setting(environment_of({{name, "4096"}}));
  EXPECT_EQ(set.value, Bytes{4096});
  EXPECT_EQ(set.source, name);
  EXPECT_EQ(bucket_setting(environment_of({{name, "4MiB"}})).value, mib(4));
  for (const char* const bad : {"0", "-1", "4MB", "0MiB", "x"}) {
    EXPECT_EQ(
        message_of<UsageError>([&] {
          (void)bucket_setting(environment_of({{name, bad}}));
        }),
        std::string(name) + "='" + bad + "' is not allowed: a number of bytes from 1 on, or 25MiB");
  }
}

/// Doubles everything, as two equal ranks do, and notes how many parts each call had.
class Doubling final : public Communicator {
 public:
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 2; }
  [[nodiscard]] std::string engine() const override { return "doubling"; }
  void broadcast(std::span<std::byte>) override {}
  void gather_all(std::span<const std::byte>, std::span<std::byte>) override {}
  void barrier() override {}
  void all_reduce(Stream& stream, std::span<const std::span<float>> parts) override {
    EXPECT_EQ(stream.role(), kRanksStream);
    calls.push_back(parts.size());
    for (const std::span<float> part : parts) {
      for (float& value : part) value *= 2;
    }
    called.pass();
  }
  void all_gather(Stream&, std::span<const float>, std::span<float>) override {}
  [[nodiscard]] Traffic traffic() const noexcept override { return {}; }
  void finish() override {}
  [[noreturn]] void abort(std::string_view) noexcept override { std::terminate(); }

  std::vector<std::size_t> calls;
  Gate called;
};

auto filled(float value) {
  return [value](Stream&, Inputs, Outputs out) { std::ranges::fill(out[0], value); };
}

TEST(BucketedReduce, ReducesABucketWhileTheNextGradientIsStillMade) {
  Device device = open_device("cpu", {.memory = mib(64)});
  Pool pool(device.memory());
  Doubling ranks;
  Gate last_gradient;
  Scheduler scheduler(device, pool);
  BucketedReduce reduce(scheduler, ranks, {2, 1});
  std::vector<Tensor> gradients;
  for (int step = 0; step < 2; ++step) {
    gradients.clear();
    for (const float value : {1.0F, 2.0F, 3.0F}) {
      Tensor gradient = scheduler.empty({100}, "gradient");
      if (value == 3) {
        scheduler.submit("layer", {.writes = {gradient}},
                         [&](Stream&, Inputs, Outputs) { last_gradient.pass(); });
      }
      scheduler.submit("gradient", {.writes = {gradient}}, filled(value));
      reduce.add(gradient);
      gradients.push_back(gradient);
    }
    if (step == 0) {
      ranks.called.await_arrival(1);  // of the first bucket, while the last gradient is not made
      last_gradient.await_arrival(1);
      last_gradient.open();
      ranks.called.open();
    }
    EXPECT_THAT(scheduler.read(gradients[0]), Each(2));
    EXPECT_THAT(scheduler.read(gradients[1]), Each(4));
    EXPECT_THAT(scheduler.read(gradients[2]), Each(6));
  }
  EXPECT_THAT(ranks.calls, ElementsAre(2, 1, 2, 1));
}

}  // namespace
}  // namespace weir::testing
