// Measures every policy on a small training loop on the cpu device: a multilayer perceptron with
// short batches, so that the host's share is visible. The reference is `unbounded` with enough
// memory. docs/main-job.md measures the policies under a budget.

#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"
#include "trainer/model/mlp.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t kRows = 32;
constexpr std::size_t kInputs = 512;
constexpr int kBatches = 50;  ///< per run, which ends with a wait for all of them

class Training {
 public:
  /// `maths` must outlive the rig's scheduler.
  Training(Rig& rig, Maths& maths)
      : scheduler_(rig.scheduler),
        operations_(rig.scheduler, maths),
        model_(operations_, std::array<std::size_t, 4>{kInputs, 256, 128, 1}, 1),
        inputs_(kRows * kInputs, 0.5F),
        targets_(kRows, 1.0F) {}

  void step(std::string_view kind) {
    const Batch batch = scheduler_.begin_batch(kind);
    const Tensor x = scheduler_.copy_in(borrowed(inputs_), {kRows, kInputs}, "inputs");
    const Tensor y = scheduler_.copy_in(borrowed(targets_), {kRows, 1}, "targets");
    Mlp::Tape tape = model_.forward(x);
    Tensor gradient = operations_.l2_loss_gradient(tape.back(), y);
    model_.backward(std::move(tape), std::move(gradient));
    model_.step(0.001F, 0);
  }

 private:
  Scheduler& scheduler_;
  Operations operations_;
  Mlp model_;
  const std::vector<float> inputs_;
  const std::vector<float> targets_;
};

struct Case {
  Policy policy;
  std::string_view room;
  Bytes budget;
  bool new_kinds = false;  ///< every fifth batch has a new kind
};

void train(benchmark::State& state, const Case& c) {
  const std::unique_ptr<Maths> maths = make_cpu_maths();
  Rig rig({.budget = c.budget, .policy = c.policy});
  Training training(rig, *maths);
  std::uint64_t batches = 0;
  const auto run = [&] {
    for (int i = 0; i < kBatches; ++i, ++batches) {
      training.step(c.new_kinds ? "train " + std::to_string(batches / 5) : "train");
    }
    rig.scheduler.wait_all();
  };
  run();  // so that the batches' kind is known and the pool is warm
  while (state.KeepRunningBatch(kBatches)) run();
}

}  // namespace

void add_policy(Table& table) {
  const std::string reference = "policy/unbounded/roomy";
  for (const Case& c :
       {Case{Policy::kUnbounded, "roomy", mib(512)}, Case{Policy::kBackstop, "roomy", mib(512)},
        Case{Policy::kThrottled, "roomy", mib(512)},
        Case{Policy::kThrottled, "roomy/new_kinds", mib(512), true},
        Case{Policy::kBarrier, "roomy", mib(512)}, Case{Policy::kBackstop, "4MiB", mib(4)},
        Case{Policy::kThrottled, "4MiB", mib(4)}, Case{Policy::kBarrier, "4MiB", mib(4)}}) {
    const std::string name =
        "policy/" + std::string(to_string(c.policy)) + "/" + std::string(c.room);
    benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& state) {
      train(state, c);
    })->UseRealTime();
    // New kinds may cost at most a hundredth of the throughput.
    table.add({.figure = name,
               .against = name == reference ? "" : reference,
               .most_ratio = c.new_kinds ? 1 / 0.99 : 0,
               .rate = "batches/s"});
  }
}

}  // namespace weir::bench
