// The operations on a maths that needs a workspace, as a GPU's does: each gets the pool's, and
// gives the same result as without.

#include "trainer/model/operations.hpp"

#include <gtest/gtest.h>

#include <set>

#include "../../scheduler/faulty_device.hpp"
#include "allocator/base/error.hpp"
#include "support/print.hpp"
#include "trainer/model/mlp.hpp"

namespace weir::testing {
namespace {

constexpr Bytes kWorkspace = kib(64);

/// Overwrites its workspace, as a GPU's kernels do, and notes its address.
class MathsWithWorkspace final : public Maths {
 public:
  [[nodiscard]] Bytes workspace() const noexcept override { return kWorkspace; }

  void fill(Stream& s, float value, Out out) override { cpu_->fill(s, value, out); }
  void fill_normal(Stream& s, NormalDraw draw, Out out) override {
    cpu_->fill_normal(s, draw, out);
  }
  void add(Stream& s, In x, Out total) override { cpu_->add(s, x, total); }
  void dense_forward(Stream& s, DenseShape shape, In x, In w, In b, Out y, Activation activation,
                     Out workspace) override {
    use(workspace);
    cpu_->dense_forward(s, shape, x, w, b, y, activation, {});
  }
  void dense_weight_gradient(Stream& s, DenseShape shape, In x, In dy, Out dw,
                             Out workspace) override {
    use(workspace);
    cpu_->dense_weight_gradient(s, shape, x, dy, dw, {});
  }
  void dense_input_gradient(Stream& s, DenseShape shape, In dy, In w, Out dx,
                            Out workspace) override {
    use(workspace);
    cpu_->dense_input_gradient(s, shape, dy, w, dx, {});
  }
  void dense_bias_gradient(Stream& s, DenseShape shape, In dy, Out db, Out workspace) override {
    use(workspace);
    cpu_->dense_bias_gradient(s, shape, dy, db, {});
  }
  void relu_and_bias_gradient(Stream& s, DenseShape shape, In y, Out dy, Out db,
                              Out workspace) override {
    use(workspace);
    cpu_->relu_and_bias_gradient(s, shape, y, dy, db, {});
  }
  void l2_loss(Stream& s, In p, In t, Out loss, Out workspace) override {
    use(workspace);
    cpu_->l2_loss(s, p, t, loss, {});
  }
  void l2_loss_gradient(Stream& s, In p, In t, Out dp) override {
    cpu_->l2_loss_gradient(s, p, t, dp);
  }
  void softmax_cross_entropy(Stream& s, LogitShape shape, In z, In labels, Out loss,
                             Out workspace) override {
    use(workspace);
    cpu_->softmax_cross_entropy(s, shape, z, labels, loss, {});
  }
  void softmax_cross_entropy_gradient(Stream& s, LogitShape shape, In z, In labels,
                                      Out dz) override {
    cpu_->softmax_cross_entropy_gradient(s, shape, z, labels, dz);
  }
  void count_correct(Stream& s, LogitShape shape, In z, In labels, Out correct,
                     Out workspace) override {
    use(workspace);
    cpu_->count_correct(s, shape, z, labels, correct, {});
  }
  void sgd(Stream& s, Out w, In g, float rate) override { cpu_->sgd(s, w, g, rate); }
  void sgd_momentum(Stream& s, Out w, In g, Out v, float rate, float momentum) override {
    cpu_->sgd_momentum(s, w, g, v, rate, momentum);
  }
  void bias_activation(Stream& s, DenseShape shape, In b, Out y, Activation activation) override {
    cpu_->bias_activation(s, shape, b, y, activation);
  }
  void csr_forward(Stream& s, const CsrRows& x, In w, In b, Out y, Activation activation) override {
    cpu_->csr_forward(s, x, w, b, y, activation);
  }
  void softmax_statistics(Stream& s, const SparseLabels& labels, In z, Out statistics,
                          Out workspace) override {
    use(workspace);
    cpu_->softmax_statistics(s, labels, z, statistics, {});
  }
  void softmax_loss(Stream& s, const SparseLabels& labels, In statistics, Out loss,
                    Out workspace) override {
    use(workspace);
    cpu_->softmax_loss(s, labels, statistics, loss, {});
  }
  void softmax_gradient(Stream& s, const SparseLabels& labels, In z, In statistics,
                        Out dz) override {
    cpu_->softmax_gradient(s, labels, z, statistics, dz);
  }
  void logistic_loss_and_gradient(Stream& s, const SparseLabels& labels, In z, Out loss, Out dz,
                                  Out workspace) override {
    use(workspace);
    cpu_->logistic_loss_and_gradient(s, labels, z, loss, dz, {});
  }
  void count_hits(Stream& s, const SparseLabels& labels, In z, Out hits, Out workspace) override {
    use(workspace);
    cpu_->count_hits(s, labels, z, hits, {});
  }
  void top_logits(Stream& s, const SparseLabels& labels, In z, Out tops, Out workspace) override {
    use(workspace);
    cpu_->top_logits(s, labels, z, tops, {});
  }
  void merge_softmax_statistics(Stream& s, In parts, Out statistics) override {
    cpu_->merge_softmax_statistics(s, parts, statistics);
  }
  void merge_hits(Stream& s, In parts, std::size_t rows, Out hits, Out workspace) override {
    use(workspace);
    cpu_->merge_hits(s, parts, rows, hits, {});
  }
  void mixed_forward(Stream& s, Precision precision, DenseShape shape, In x, In w, In b, Out y,
                     Activation activation, Out workspace) override {
    use(workspace);
    cpu_->mixed_forward(s, precision, shape, x, w, b, y, activation, {});
  }
  void mixed_weight_gradient(Stream& s, Precision precision, DenseShape shape, In x, In dy, Out dw,
                             Out workspace) override {
    use(workspace);
    cpu_->mixed_weight_gradient(s, precision, shape, x, dy, dw, {});
  }
  void mixed_input_gradient(Stream& s, Precision precision, DenseShape shape, In dy, In w, Out dx,
                            Out workspace) override {
    use(workspace);
    cpu_->mixed_input_gradient(s, precision, shape, dy, w, dx, {});
  }
  void to_half(Stream& s, HalfKind kind, In x, Out words) override {
    cpu_->to_half(s, kind, x, words);
  }
  void scale_to_half(Stream& s, HalfKind kind, In state, Out x, Out words) override {
    cpu_->scale_to_half(s, kind, state, x, words);
  }
  void flag_not_finite(Stream& s, In x, Out state) override { cpu_->flag_not_finite(s, x, state); }
  void begin_step(Stream& s, const OptimizerOptions& options, Out state) override {
    cpu_->begin_step(s, options, state);
  }
  void end_step(Stream& s, const LossScaling& scaling, Out state) override {
    cpu_->end_step(s, scaling, state);
  }
  void update(Stream& s, const OptimizerOptions& options, const Weights& weights, In g,
              In state) override {
    cpu_->update(s, options, weights, g, state);
  }
  void update_rows(Stream& s, const OptimizerOptions& options, const Weights& weights,
                   DenseShape shape, const CsrColumns& x, In dy, In state,
                   UpdatedRows rows) override {
    cpu_->update_rows(s, options, weights, shape, x, dy, state, rows);
  }

  // Written on the device's thread; read once it is idle.
  int uses = 0;
  std::set<const float*> places;

 private:
  void use(Out workspace) {
    ASSERT_EQ(workspace.size_bytes(), kWorkspace.count);
    std::ranges::fill(workspace, -7.0F);
    places.insert(workspace.data());
    ++uses;
  }
  const std::unique_ptr<Maths> cpu_ = make_cpu_maths();
};

class Rig {
 public:
  explicit Rig(Maths& maths, Bytes budget = mib(16))
      : device_(open_device("cpu", {.memory = mib(64)})),
        pool_(device_.memory()),
        scheduler(device_, pool_, {.budget = budget}),
        operations(scheduler, maths) {}

  /// The weights after three steps, the last with momentum, the sum of both losses and the count of
  /// correct rows.
  std::vector<std::vector<float>> train() {
    const std::vector<std::size_t> widths{6, 8, 5, 3};
    Mlp model(operations, widths, 11);
    const Tensor labels = operations.filled({4}, 2, "labels");
    const Tensor total = operations.filled({1}, 0, "total");
    for (std::uint64_t i = 0; i < 3; ++i) {
      Mlp::Tape tape = model.forward(operations.drawn({4, 6}, {.seed = 11, .sequence = i}, "x"));
      const Tensor logits = tape.back();
      operations.accumulate(total, operations.l2_loss(logits, logits));
      operations.accumulate(total, operations.softmax_loss(logits, labels));
      operations.accumulate(total, operations.correct_rows(logits, labels));
      model.backward(std::move(tape), operations.softmax_loss_gradient(logits, labels));
      model.step(0.1F, i == 2 ? 0.9F : 0.0F);
    }
    auto results = model.read_parameters();
    results.push_back(scheduler.read(total));
    return results;
  }

 private:
  Device device_;
  Pool pool_;

 public:
  Scheduler scheduler;
  Operations operations;
};

TEST(Operations, UseOneWorkspaceAndComputeTheSameAsWithout) {
  MathsWithWorkspace maths;
  const std::unique_ptr<Maths> plain = make_cpu_maths();
  EXPECT_EQ(Rig(maths).train(), Rig(*plain).train());
  // Each batch: 3 layers forward, 3 bias gradients, 3 weight gradients, 2 input gradients, both
  // losses and the count.
  EXPECT_EQ(maths.uses, 3 * (3 + 3 + 3 + 2 + 2 + 1));
  EXPECT_EQ(maths.places.size(), 1U);
}

TEST(Operations, TheWorkspaceIsOfTheBudget) {
  MathsWithWorkspace maths;
  EXPECT_EQ(Rig(maths).scheduler.memory_info().allocated, kWorkspace);
  EXPECT_THROW(Rig(maths, kib(32)), OutOfMemory);
  const std::unique_ptr<Maths> plain = make_cpu_maths();
  EXPECT_EQ(Rig(*plain).scheduler.memory_info().allocated, Bytes{});
  EXPECT_EQ(workspace_of("cpu"), Bytes{});
}

TEST(Operations, TheCpuDeviceGetsTheMathsOfTheCpu) {
  EXPECT_EQ(make_maths(open_device("cpu", {.memory = mib(1)}))->workspace(), Bytes{});
}

TEST(Operations, ADeviceOfAnUnknownNameGetsNoMaths) {
  const Device device(std::make_unique<FaultyDevice>(mib(1)));
  EXPECT_THROW((void)make_maths(device), UsageError);
  EXPECT_THROW((void)workspace_of("tpu"), UsageError);
}

}  // namespace
}  // namespace weir::testing
