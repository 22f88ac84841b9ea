// The delay of a training by a checkpoint, on the cpu device: 20 steps of a dense network of two
// million parameters, with one checkpoint among them and with none. A checkpoint may cost the time
// of one step.

#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"
#include "tools/program/temporary_folder.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/model/mlp.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t kRows = 64;
constexpr std::size_t kWidth = 1024;
constexpr int kSteps = 20;

class Network {
 public:
  /// `maths` must outlive the rig's scheduler.
  Network(Rig& rig, Maths& maths)
      : scheduler_(rig.scheduler),
        operations_(rig.scheduler, maths),
        model_(operations_, std::array{kWidth, kWidth, kWidth}, 1),
        values_(kRows * kWidth, 0.5F) {}

  void step() {
    const Batch batch = scheduler_.begin_batch("train");
    const Tensor x = scheduler_.copy_in(borrowed(values_), {kRows, kWidth}, "inputs");
    const Tensor y = scheduler_.copy_in(borrowed(values_), {kRows, kWidth}, "targets");
    Mlp::Tape tape = model_.forward(x);
    Tensor gradient = operations_.l2_loss_gradient(tape.back(), y);
    model_.backward(std::move(tape), std::move(gradient));
    model_.step(0.001F, 0);
  }
  [[nodiscard]] CheckpointState state() const {
    CheckpointState state;
    for (const Tensor& tensor : model_.parameters()) {
      state.tensors.push_back({"p" + std::to_string(state.tensors.size()), tensor});
    }
    return state;
  }

 private:
  Scheduler& scheduler_;
  Operations operations_;
  Mlp model_;
  const std::vector<float> values_;
};

/// One training for both figures: two trainings differ by more than a checkpoint costs.
class Training {
 public:
  Training() {
    CheckpointOptions options;
    options.path = folder_.path() + "/run.ckp";
    options.schedule.batches = 1;
    checkpointer_.emplace(rig_.scheduler, options);
    run(false);  // so that the batches' kind is known and the pool is warm
    run(true);
  }

  /// kSteps; behind the fourth of them a checkpoint begins, if there is one.
  void run(bool with_checkpoint) {
    for (int i = 0; i < kSteps; ++i) {
      network_.step();
      ++done_;
      if (!with_checkpoint || i != 3) continue;
      checkpointer_->after_batch(done_, [&] { return network_.state(); });
      ++begun_;
    }
    rig_.scheduler.wait_all();
  }
  void await_file() const {
    while (checkpointer_->statistics().written < begun_) std::this_thread::yield();
  }
  /// Whether a step waited for the file, because there was no room for copies.
  [[nodiscard]] bool was_held() const { return checkpointer_->statistics().held != 0; }

 private:
  std::unique_ptr<Maths> maths_ = make_cpu_maths();
  Rig rig_{{.budget = mib(512), .policy = Policy::kThrottled}};
  Network network_{rig_, *maths_};
  const TemporaryFolder folder_{process_environment(), "weir-bench"};
  std::uint64_t done_ = 0;
  std::uint64_t begun_ = 0;
  std::optional<Checkpointer> checkpointer_;
};

void train_beside(benchmark::State& state, std::unique_ptr<Training>& training, bool checkpoint) {
  if (training == nullptr) training = std::make_unique<Training>();
  for ([[maybe_unused]] auto _ : state) {
    training->await_file();
    const auto begun = std::chrono::steady_clock::now();
    training->run(checkpoint);
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  if (training->was_held()) state.SkipWithError("there was no room for copies");
}

}  // namespace

void add_checkpoint(Table& table) {
  const std::string none = "checkpoint/20_steps/none";
  const std::string one = "checkpoint/20_steps/one";
  const auto training = std::make_shared<std::unique_ptr<Training>>();  // ends with the benchmarks
  for (const std::string& name : {none, one}) {
    const auto train = [training, with = name == one](benchmark::State& state) {
      train_beside(state, *training, with);
    };
    const Row row = name == one
                        ? Row{.figure = one, .against = none, .most_ratio = 1.0 + 1.0 / kSteps}
                        : Row{.figure = none};
    table.add(row, train)->UseManualTime();
  }
}

}  // namespace weir::bench
