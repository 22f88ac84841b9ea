// The model alone, on a scheduler whose device a test stops: work submitted while nothing could run
// must give the same result as if each line had waited for the previous one.

#include "trainer/model/mlp.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/gate.hpp"
#include "support/print.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/reference_mlp.hpp"

namespace weir::testing {
namespace {

const std::vector<std::size_t> kWidths{16, 32, 8, 1};
constexpr std::size_t kRows = 8;
constexpr std::uint64_t kSeed = 7;
constexpr float kRate = 0.1F;

class ModelOnAScheduler {
 public:
  ModelOnAScheduler()
      : device_(open_device("cpu", {.memory = mib(64)})),
        pool_(device_.memory()),
        inputs_(kRows * kWidths.front()),
        targets_(kRows),
        maths_(make_maths(device_)),
        scheduler(device_, pool_),
        operations(scheduler, *maths_),
        model(operations, kWidths, kSeed),
        reference(kWidths, kSeed) {
    generated_source(kSeed)(0, inputs_, targets_);
    x = scheduler.copy_in(inputs_, {kRows, kWidths.front()});
    y = scheduler.copy_in(targets_, {kRows, 1});
    scheduler.wait_all();
  }
  /// A test that failed on the way must not leave the device waiting.
  ~ModelOnAScheduler() { gate_.open(); }

  /// From now until `let_go` nothing submitted to the compute stream can run.
  void hold_device() {
    const Tensor held = scheduler.empty({1}, "held");
    scheduler.submit("hold", {.writes = {held}},
                     [this](Stream&, Inputs, Outputs) { gate_.pass(); });
    gate_.await_arrival();
  }
  void let_go() { gate_.open(); }

  Tensor train_once() {
    Mlp::Tape tape = model.forward(x);
    Tensor loss = operations.l2_loss(tape.back(), y);
    Tensor gradient = operations.l2_loss_gradient(tape.back(), y);
    model.backward(std::move(tape), std::move(gradient));
    model.step(kRate, 0);
    return loss;
  }
  void train_reference_once() {
    reference.step(reference.gradients(reference.forward(reference_x()), reference_y()),
                   double{kRate}, 0);
  }
  [[nodiscard]] Numbers reference_x() const { return widened(inputs_); }
  [[nodiscard]] Numbers reference_y() const { return widened(targets_); }
  [[nodiscard]] double reference_loss() const {
    return ReferenceMlp::loss(reference.forward(reference_x()).back(), reference_y());
  }

 private:
  Gate gate_;
  Device device_;
  Pool pool_;
  std::vector<float> inputs_;
  std::vector<float> targets_;
  std::unique_ptr<Maths> maths_;  // outlives the scheduler, whose closures use it

 public:
  Scheduler scheduler;
  Operations operations;
  Mlp model;
  ReferenceMlp reference;
  Tensor x;
  Tensor y;
};

TEST(Trainer, ForwardAfterStepUsesUpdatedWeightsThoughStepDidNotWait) {
  ModelOnAScheduler m;
  const Numbers before = m.reference.forward(m.reference_x()).back();
  m.hold_device();
  const Tensor loss = m.train_once();
  const Tensor prediction = m.model.forward(m.x).back();
  // Everything is submitted, and none of it has run.
  ASSERT_FALSE(m.scheduler.reached(m.scheduler.written(loss)));
  ASSERT_FALSE(m.scheduler.reached(m.scheduler.written(m.model.parameters().front())));
  m.let_go();

  m.train_reference_once();
  const Numbers after = m.reference.forward(m.reference_x()).back();
  const std::vector<float> ours = m.scheduler.read(prediction);
  EXPECT_LE(largest_difference({ours}, {after}), 1e-5);
  EXPECT_GE(largest_difference({ours}, {before}), 1e-2);
}

TEST(Trainer, LossFromBeforeStepReadLongAfterItIsTheOneFromBefore) {
  ModelOnAScheduler m;
  const double before = m.reference_loss();
  m.hold_device();
  const Tensor loss = m.train_once();
  for (int i = 0; i < 20; ++i) {
    (void)m.train_once();
    m.train_reference_once();
  }
  const Tensor last = m.operations.l2_loss(m.model.forward(m.x).back(), m.y);
  ASSERT_FALSE(m.scheduler.reached(m.scheduler.written(loss)));
  m.let_go();
  m.train_reference_once();

  m.scheduler.wait(last);
  EXPECT_NEAR(double{m.scheduler.read(loss).front()}, before, 1e-5 * before);
  EXPECT_NEAR(double{m.scheduler.read(last).front()}, m.reference_loss(), 1e-5);
  EXPECT_LT(m.reference_loss(), 0.9 * before) << "the two losses must be told apart";
}

TEST(Mlp, GradientsEqualFiniteDifferences) {
  ModelOnAScheduler m;
  const auto before = m.model.read_parameters();
  Mlp::Tape tape = m.model.forward(m.x);
  Tensor gradient = m.operations.l2_loss_gradient(tape.back(), m.y);
  m.model.backward(std::move(tape), std::move(gradient));
  m.model.step(1, 0);  // at a rate of 1 a step moves a weight by its gradient
  const auto after = m.model.read_parameters();

  constexpr double kSmall = 1e-6;
  double largest = 0;
  for (std::size_t p = 0; p < before.size(); ++p) {
    for (std::size_t i = 0; i < before[p].size(); ++i) {
      double& w = m.reference.parameters[p][i];
      const double here = w;
      w = here + kSmall;
      const double above = m.reference_loss();
      w = here - kSmall;
      const double below = m.reference_loss();
      w = here;
      const double slope = (above - below) / (2 * kSmall);
      largest = std::max(largest, std::abs(slope));
      ASSERT_NEAR(double{before[p][i]} - double{after[p][i]}, slope, 2e-6)
          << "parameter " << p << ", element " << i;
    }
  }
  EXPECT_GT(largest, 0.1) << "gradients of zero would agree with anything";
}

TEST(Mlp, StartsFromTheWeightsThatItsSeedNamesAndFromBiasesOfZero) {
  ModelOnAScheduler m;
  EXPECT_EQ(largest_difference(m.model.read_parameters(), m.reference.parameters), 0);
}

TEST(Mlp, AccumulateAddsInPlace) {
  ModelOnAScheduler m;
  const Tensor total = m.operations.filled({3}, 1.5F, "total");
  const Tensor value = m.operations.filled({3}, 0.25F, "value");
  m.operations.accumulate(total, value);
  m.operations.accumulate(total, value);
  EXPECT_EQ(m.scheduler.read(total), (std::vector<float>{2, 2, 2}));
}

TEST(Mlp, BackwardLetsGoOfTheTape) {
  ModelOnAScheduler m;
  const Bytes live = m.scheduler.memory_info().allocated;
  (void)m.train_once();
  m.scheduler.wait_all();
  EXPECT_EQ(m.scheduler.memory_info().allocated, live);
}

TEST(Mlp, RefusesAModelWithoutAnOutput) {
  ModelOnAScheduler m;
  EXPECT_THROW(Mlp(m.operations, std::vector<std::size_t>{16}, kSeed), UsageError);
}

}  // namespace
}  // namespace weir::testing
