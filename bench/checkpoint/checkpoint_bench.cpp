// The delay of a training by a checkpoint, on the cpu device: 20 steps of a dense network of two
// million parameters, with one checkpoint among them and with none. A checkpoint may cost the time
// of one step.

#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/model/mlp.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t kRows = 64;
constexpr std::size_t kWidth = 1024;
constexpr int kSteps = 20;

/// A folder for the file, which goes with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Error("no folder for checkpoints can be made");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file() const { return (path_ / "run.ckp").string(); }

 private:
  std::filesystem::path path_;
};

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
    const Tensor x = scheduler_.copy_in(values_, {kRows, kWidth}, "inputs");
    const Tensor y = scheduler_.copy_in(values_, {kRows, kWidth}, "targets");
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

/// Trains kSteps at a time; in the fourth of them begins a checkpoint if `every` is kSteps.
void train_beside(benchmark::State& state, std::uint64_t every) {
  const std::unique_ptr<Maths> maths = make_cpu_maths();
  Rig rig({.budget = mib(512), .policy = Policy::kThrottled});
  Network network(rig, *maths);
  const Folder folder;
  CheckpointOptions options;
  options.path = folder.file();
  options.schedule.batches = every;
  std::uint64_t done = kSteps - 4;
  Checkpointer checkpointer(rig.scheduler, options);
  const auto run = [&] {
    for (int i = 0; i < kSteps; ++i) {
      network.step();
      checkpointer.after_batch(++done, [&] { return network.state(); });
    }
    rig.scheduler.wait_all();
  };
  run();  // so that the batches' kind is known and the pool is warm
  std::uint64_t runs = 1;
  for ([[maybe_unused]] auto _ : state) {
    const auto begun = std::chrono::steady_clock::now();
    run();
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    ++runs;
    while (every != 0 && checkpointer.statistics().written < runs) std::this_thread::yield();
  }
  if (checkpointer.statistics().held > 1) state.SkipWithError("there was no room for copies");
}

}  // namespace

void add_checkpoint(Table& table) {
  const std::string none = "checkpoint/20_steps/none";
  const std::string one = "checkpoint/20_steps/one";
  benchmark::RegisterBenchmark(none.c_str(), train_beside, 0)->UseManualTime();
  benchmark::RegisterBenchmark(one.c_str(), train_beside, kSteps)->UseManualTime();
  table.add({.figure = none});
  table.add({.figure = one, .against = none, .most_ratio = 1.0 + 1.0 / kSteps});
}

}  // namespace weir::bench
