// The operations on a maths that needs a workspace, as a GPU's does: each gets the pool's, and
// gives the same result as without.

#include "trainer/model/operations.hpp"

#include <gtest/gtest.h>

#include <set>

#include "../../scheduler/faulty_device.hpp"
#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "support/print.hpp"
#include "trainer/model/mlp.hpp"

namespace weir::testing {
namespace {

constexpr Bytes kWorkspace = kib(64);

/// Overwrites its workspace, as a GPU's kernels do, and notes its address.
class MathsWithWorkspace final : public Maths {
 public:
  [[nodiscard]] Bytes workspace() const noexcept override { return kWorkspace; }

  void fill_normal(Stream& s, NormalDraw draw, Out out) override {
    make_cpu_maths()->fill_normal(s, draw, out);
  }
#define MATHS(name, parameters, arguments) \
  void name(Stream&, MATHS_LIST parameters) override { weir::name arguments; }
#define MATHS_SCRATCH(name, parameters, arguments)                    \
  void name(Stream&, MATHS_LIST parameters, Out workspace) override { \
    use(workspace);                                                   \
    weir::name arguments;                                             \
  }
#define MATHS_BLAS MATHS_SCRATCH
#include "trainer/model/maths.inc"

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
