// A batch that is collected and submitted as one operation computes what its operations compute.

#include "trainer/static/static_batch.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "../../scheduler/rig.hpp"
#include "allocator/base/error.hpp"
#include "scheduler/operation.hpp"
#include "support/message_of.hpp"

namespace weir::testing {
namespace {

using Places = std::vector<const float*>;

/// A scheduler, and static batches on it.
class StaticRig {
 public:
  explicit StaticRig(const RigOptions& options = {}) : rig(options), submitter(rig.scheduler()) {}

  /// Submits `body` as one static batch in a batch of its own.
  void run(const std::function<void()>& body) {
    const Batch scope = rig->begin_batch("static");
    batch.run("static", body);
  }
  /// A new tensor of `elements`, written with `value`; notes its address in `places`.
  Tensor made(std::size_t elements, float value) {
    Tensor tensor = submitter.empty({elements}, "made");
    submitter.submit("make", {.writes = {tensor}}, [this, value](Stream&, Inputs, Outputs out) {
      places.push_back(out[0].data());
      std::ranges::fill(out[0], value);
    });
    return tensor;
  }
  /// total[0] += x[0] + y[0]; x and y are as large as they are.
  void add(const Tensor& x, const Tensor& y) {
    submitter.submit("add", {.reads = {x, y, total}, .writes = {total}},
                     [](Stream&, Inputs in, Outputs out) { out[0][0] += in[0][0] + in[1][0]; });
  }
  /// Three tensors, of which two live at a time, added to `total`: 6 for each batch.
  void sum_of_three(std::size_t elements) {
    Tensor x = made(elements, 1);
    Tensor y = made(elements, 2);
    add(x, y);
    x = {};
    const Tensor z = made(elements, 1);
    add(y, z);
  }
  [[nodiscard]] std::uint64_t pool_calls() const {
    const Statistics s = rig.pool.statistics();
    return s.hits + s.misses + s.handovers;
  }

  Places places;  // written on the device's thread, so it outlives the rig; read once that is idle
  Rig rig;
  Submitter submitter;
  StaticBatch batch{submitter};
  const Tensor total = rig.filled(kib(4), 0);
};

TEST(StaticBatch, HasItsAddressesFromTheSecondBatchOnAndThenNoCallOfThePool) {
  StaticRig s;
  std::uint64_t calls = 0;
  std::uint64_t operations = 0;
  for (int i = 0; i < 6; ++i) {
    s.run([&] { s.sum_of_three(4096); });
    if (i == 1) {
      calls = s.pool_calls();
      operations = s.rig->operations();
    }
  }
  EXPECT_EQ(s.rig->operations(), operations + 4) << "one for each batch";
  s.rig->wait_all();
  EXPECT_EQ(s.pool_calls(), calls);
  EXPECT_EQ(s.batch.replayed(), 5U);
  ASSERT_EQ(s.places.size(), 18U);
  for (std::size_t i = 6; i < s.places.size(); ++i) EXPECT_EQ(s.places[i], s.places[i - 3]);
  EXPECT_EQ(s.batch.arena(), Bytes{2 * 4096 * sizeof(float)}) << "x and z never live together";
  EXPECT_EQ(s.rig->read(s.total).front(), 36.0F);
  EXPECT_EQ(s.batch.captures(), 0U);
}

TEST(StaticBatch, OfAnotherShapeIsRightAndSoIsTheOldOneAfterwards) {
  StaticRig s;
  for (int round = 0; round < 3; ++round) {
    // One shape more than is kept would never be known again.
    for (std::size_t i = 0; i < StaticBatch::kPlans; ++i) {
      s.run([&] { s.sum_of_three(100 * (i + 1)); });
    }
  }
  EXPECT_EQ(s.batch.replayed(), 2 * StaticBatch::kPlans);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < StaticBatch::kPlans + 1; ++i) {
      s.run([&] { s.sum_of_three(1000 * (i + 1)); });
    }
  }
  EXPECT_EQ(s.batch.replayed(), 2 * StaticBatch::kPlans) << "each is the one used longest ago";
  EXPECT_EQ(s.rig->read(s.total).front(), 6.0F * (3 * 4 + 3 * 5));
}

TEST(StaticBatch, LeavesOutOfTheArenaWhatOthersStillHold) {
  StaticRig s;
  std::vector<Tensor> kept;
  for (int i = 0; i < 4; ++i) {
    s.run([&] { kept.push_back(s.made(8, static_cast<float>(i))); });
  }
  EXPECT_EQ(s.batch.replayed(), 3U);
  EXPECT_EQ(s.batch.arena(), Bytes{});
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(s.rig->read(kept[i]), std::vector<float>(8, static_cast<float>(i)));
  }
}

TEST(StaticBatch, TellsABatchThatHoldsATensorFromOneThatDoesNot) {
  StaticRig s;
  Tensor kept;
  for (int i = 0; i < 6; ++i) {
    s.run([&] {
      const Tensor x = s.made(8, static_cast<float>(i));
      if (i % 2 == 1) kept = x;
      s.add(x, x);
    });
  }
  EXPECT_EQ(s.batch.replayed(), 4U);
  EXPECT_EQ(s.rig->read(kept).front(), 5.0F);
  EXPECT_EQ(s.rig->read(s.total).front(), 2.0F * (0 + 1 + 2 + 3 + 4 + 5));
}

TEST(StaticBatch, SubmitsOneByOneIfAnotherStreamUsesWhatItCollects) {
  StaticRig s;
  const Tensor other = s.rig.filled(kib(4), 0);
  for (int i = 0; i < 4; ++i) {
    s.run([&] {
      s.sum_of_three(64);
      s.submitter.submit("elsewhere",
                         {.reads = {s.total}, .writes = {other}, .stream = StreamRole::kCompute2},
                         [](Stream&, Inputs in, Outputs out) { out[0][0] = in[0][0]; });
      s.add(other, other);
    });
  }
  EXPECT_EQ(s.batch.replayed(), 0U);
  float expected = 0;
  for (int i = 0; i < 4; ++i) expected = 3 * (expected + 6);
  EXPECT_EQ(s.rig->read(s.total).front(), expected);
}

TEST(StaticBatch, SubmitsOtherStreamsAtOnceIfTheyUseNothingOfIt) {
  StaticRig s;
  for (int i = 0; i < 4; ++i) {
    s.run([&] {
      s.sum_of_three(64);
      const Tensor x = s.submitter.empty({64}, "x");
      s.submitter.submit("elsewhere", {.writes = {x}, .stream = StreamRole::kCompute2}, fill(1));
      s.add(x, x);
    });
  }
  EXPECT_EQ(s.batch.replayed(), 3U);
  EXPECT_EQ(s.rig->read(s.total).front(), 32.0F);
}

TEST(StaticBatch, AnErrorNamesTheOperationAndTheSchedulerGoesOn) {
  StaticRig s;
  const auto run = [&](bool breaks) {
    s.run([&] {
      const Tensor x = s.made(8, 1);
      s.submitter.submit("fragile", {.reads = {x}, .writes = {s.total}},
                         [breaks](Stream&, Inputs in, Outputs out) {
                           if (breaks) throw Broken("boom");
                           out[0][0] = in[0][0];
                         });
    });
  };
  run(false);
  run(false);
  run(true);
  const std::string message = message_of<OperationError>([&] { s.rig->wait_all(); });
  EXPECT_NE(message.find("'fragile': boom"), std::string::npos) << message;
  EXPECT_THROW((void)s.rig->read(s.total), OperationError);
  run(false);  // writes it anew
  EXPECT_EQ(s.rig->read(s.total).front(), 1.0F);
  EXPECT_EQ(s.batch.replayed(), 3U);
  expect_idle(s.rig);
}

TEST(StaticBatch, ABodyThatThrowsSubmitsNothing) {
  StaticRig s;
  for (int i = 0; i < 3; ++i) s.run([&] { s.sum_of_three(64); });
  const std::uint64_t before = s.rig->operations();
  EXPECT_THROW(s.run([&] {
    s.sum_of_three(64);
    throw Broken("in the middle");
  }),
               Broken);
  EXPECT_EQ(s.rig->operations(), before);
  s.submitter.submit("direct", {.reads = {s.total}, .writes = {s.total}}, add(1));
  s.run([&] { s.sum_of_three(64); });
  EXPECT_EQ(s.rig->read(s.total).front(), 6.0F * 4 + 1);
}

TEST(StaticBatch, RefusesAnEmptyHandleAndAnotherInside) {
  StaticRig s;
  EXPECT_THROW(s.run([&] { s.add(Tensor(), s.total); }), UsageError);
  EXPECT_THROW(s.run([&] { s.batch.run("inner", [] {}); }), UsageError);
  s.run([&] { s.add(s.total, s.total); });
  EXPECT_EQ(s.rig->read(s.total).front(), 0.0F);
}

TEST(StaticBatch, AReadOfWhatNothingWroteIsRefusedAsEver) {
  StaticRig s;
  EXPECT_THROW(s.run([&] {
    const Tensor x = s.submitter.empty({8}, "x");
    s.add(x, x);
  }),
               UsageError);
}

TEST(StaticBatch, AnArenaThatDoesNotFitIsReportedAndNothingElseIsLost) {
  // Five tensors of a mebibyte: each is a block of its size, the arena is rounded to eight.
  StaticRig s({.budget = mib(6), .policy = Policy::kBackstop});
  const auto body = [&] {
    std::vector<Tensor> all;
    for (int i = 0; i < 5; ++i) all.push_back(s.made(mib(1).count / sizeof(float), 1));
    for (const Tensor& x : all) s.add(x, all.front());
  };
  s.run(body);
  const std::string report = message_of<OutOfMemory>([&] { s.run(body); });
  EXPECT_NE(report.find("static arena"), std::string::npos) << report;
  EXPECT_EQ(s.rig->read(s.total).front(), 10.0F);
  s.run([&] { s.sum_of_three(64); });
  EXPECT_EQ(s.rig->read(s.total).front(), 16.0F);
  expect_idle(s.rig);
}

TEST(StaticBatch, GivesTheSameResultUnderEveryPolicyAndPool) {
  for (const Policy policy : kAllPolicies) {
    for (const PoolKind kind : kAllPoolKinds) {
      StaticRig s({.kind = kind, .policy = policy});
      for (int i = 0; i < 8; ++i) s.run([&] { s.sum_of_three(i % 4 == 3 ? 500 : 3000); });
      EXPECT_EQ(s.rig->read(s.total).front(), 48.0F)
          << to_string(policy) << ", " << to_string(kind);
      EXPECT_EQ(s.batch.replayed(), 6U);
    }
  }
}

}  // namespace
}  // namespace weir::testing
