// Operations whose tensors are on another device, of each family: refused when they are submitted,
// in a line that says where. The lines are printed, for docs/placement.md.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/model/mixed_operations.hpp"
#include "trainer/model/optimizer_operations.hpp"
#include "trainer/model/sparse_operations.hpp"
#include "trainer/run/run_resources.hpp"
#include "trainer/static/static_batch.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

class StandinElsewhere : public ::testing::Test {
 protected:
  static TrainSettings settings_on(const std::string& device) {
    TrainSettings settings = tiny_wide().train;
    settings.device = {device, "--device"};
    return settings;
  }
  [[nodiscard]] static Tensor matrix(RunResources& there, std::string_view label) {
    return there.operations().filled({4, 4}, 1, label);
  }
  [[nodiscard]] static Tensor row(RunResources& there, std::string_view label) {
    return there.operations().filled({4}, 1, label);
  }
  template <typename Call>
  void refuses(const std::string& begins, const Call& call) {
    const std::uint64_t before = gpu.scheduler().operations();
    const std::string line = message_of<UsageError>(call);
    std::printf("%s\n", line.c_str());
    EXPECT_EQ(line.find(begins), 0U) << line;
    expect_parts(line, {" is on cpu, and it runs on cuda:0: copy it first (DeviceLink::copy_to)"});
    EXPECT_EQ(gpu.scheduler().operations(), before) << begins;
  }

  RunResources cpu{settings_on("cpu")};
  RunResources gpu{settings_on("cuda")};
  Operations& ops = gpu.operations();
  MixedOperations products{ops, Precision::kFloat32};
  const Tensor x = matrix(gpu, "x");
  const Tensor w = matrix(cpu, "w1");
  const Tensor b = row(gpu, "b1");
};

TEST_F(StandinElsewhere, DenseLayersLossesAndSteps) {
  refuses("dense: its input 2 'w1' of shape 4x4", [&] { (void)products.dense({x}, {w}, b, {}); });
  refuses("dense: its input 1 'w1'", [&] { (void)products.dense({w}, {x}, b, {}); });
  refuses("weight gradient: its output 1", [&] { products.weight_gradient({x}, {x}, w); });
  refuses("loss: its input 1", [&] { (void)ops.softmax_loss(w, b); });
  refuses("step: its input 2", [&] { ops.step(w, x, 0.1F); });
  refuses("fill: its output 1", [&] { ops.fill(w, 0); });
  refuses("accumulate: its input 1", [&] { ops.accumulate(x, w); });
}

TEST_F(StandinElsewhere, MixedPrecision) {
  MixedOperations mixed(ops, Precision::kBf16);
  refuses("to 16 bits: its input 1", [&] { (void)mixed.factor(w); });
  const Factor here = mixed.factor(x);
  refuses("dense: its input 2", [&] { (void)mixed.dense(here, {w, w}, b, {}); });
  refuses("input gradient: its input 2", [&] { (void)mixed.input_gradient(here, {w, w}); });
}

TEST_F(StandinElsewhere, SparseBatches) {
  SparseOperations sparse(ops);
  const PackedSizes sizes{.rows = 4, .entries = 0, .touched = 0, .labels = 0};
  const Tensor words = cpu.operations().filled({packed_words(sizes)}, 0, "sparse batch");
  const PackedTensor batch{words, sizes, {.columns = 4, .classes = 4}, {}};
  refuses("sparse layer: its input 1 'sparse batch'",
          [&] { (void)sparse.layer(batch, x, b, Activation::kRelu); });
  for (const SparseLoss loss : {SparseLoss::kSoftmax, SparseLoss::kLogistic}) {
    refuses(
        std::string(loss == SparseLoss::kSoftmax ? "softmax" : "logistic") + " loss: its input 1",
        [&] { (void)sparse.loss_and_gradient(loss, x, batch); });
  }
  refuses("count hits: its input 1", [&] { (void)sparse.hits(x, batch); });
}

TEST_F(StandinElsewhere, Optimizers) {
  OptimizerOperations optimizer(ops, {.optimizer = Optimizer::kAdam}, kNoLossScaling);
  const Parameter whole = optimizer.parameter("p", x);
  refuses("update: its input 1 'w1'", [&] { optimizer.update(whole, w); });
  Parameter torn = whole;
  torn.second = w;
  refuses("update: its input 5 'w1'", [&] { optimizer.update(torn, x); });
  OptimizerOperations there(cpu.operations(), {.optimizer = Optimizer::kAdam}, kNoLossScaling);
  optimizer.follow(there.state());
  refuses("begin step: its input 1 'optimizer state'", [&] { optimizer.begin(); });
}

TEST_F(StandinElsewhere, OperationsThatAreCollectedAreRefusedOneByOne) {
  StaticBatch collected(ops.submitter());
  refuses("dense: its input 2 'w1'",
          [&] { collected.run("batch", [&] { (void)products.dense({x}, {w}, b, {}); }); });
}

}  // namespace
}  // namespace weir::testing
