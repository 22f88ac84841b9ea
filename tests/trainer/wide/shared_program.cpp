// One rank of a test of `weir-train wide`'s training, started by an mpirun or with torchrun's
// variables:
//
//   shared_program DEVICE FOLDER            trains every case twice, and writes for each
//                                           FOLDER/CASE.RANK, its weights, and a line of figures
//   shared_program DEVICE FOLDER killed     the last rank kills itself in its fifth batch
//
// Exits with 1 if the second training has other bits than the first.

#include <csignal>
#include <fstream>
#include <iostream>

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"
#include "shared_cases.hpp"
#include "tools/program/run_main.hpp"
#include "trainer/ranks/open.hpp"
#include "trainer/wide/wide_agreement.hpp"
#include "trainer/wide/wide_train.hpp"

namespace {

using namespace weir;
using namespace std::chrono_literals;

void write(const std::string& file, const WideResult& result) {
  std::ofstream out(file, std::ios::binary);
  for (const std::vector<float>& weights : result.run.weights) {
    out.write(reinterpret_cast<const char*>(weights.data()),
              static_cast<std::streamsize>(weights.size() * sizeof(float)));
  }
  if (!out.flush()) throw Error("cannot write " + file);
}

/// The figures of one line: `CASE RANK loss …`. Together, since ranks share the output.
std::string line_of(const std::string& name, int rank, const WideResult& result) {
  const auto text = [](auto value) { return " " + std::to_string(value); };
  return name + text(rank) + text(result.run.mean_loss.value()) + text(result.hit_share.value()) +
         text(result.run.test_accuracy.value()) + text(result.run.test_images) +
         text(result.skipped_steps) + text(result.ranks->sent) + text(result.ranks->by_formula) +
         "\n";
}

WideResult train(const WideSettings& settings, Communicator& ranks) {
  WideResult result = train_wide(settings, {.read_weights = true, .ranks = &ranks});
  if (result.run.outcome != Outcome::kFinished) throw Error(result.run.report);
  return result;
}

void train_all(const std::string& device, const std::string& folder, Communicator& ranks) {
  for (const testing::SharedCase& one : testing::shared_cases(device)) {
    agree(ranks, agreed_fields(one.settings));
    const WideResult result = train(one.settings, ranks);
    if (train(one.settings, ranks).run.weights != result.run.weights) {
      throw Error(one.name + " has other bits the second time");
    }
    write(folder + "/" + one.name + "." + std::to_string(ranks.rank()), result);
    std::cout << line_of(one.name, ranks.rank(), result) << std::flush;
  }
}

void die(const std::string& device, Communicator& ranks) {
  WideSettings settings = testing::shared_cases(device).front().settings;
  settings.train.batches = 1'000'000;
  const bool last = ranks.rank() == ranks.size() - 1;
  const auto on_done = [&](std::uint64_t done, std::uint64_t /*all*/) {
    if (last && done == 5) (void)std::raise(SIGKILL);
  };
  (void)train_wide(settings, {.on_done = on_done, .ranks = &ranks});
}

int run(const std::string& device, const std::string& folder, bool dies) {
  const Launch launch = find_launch();
  RanksOptions options;
  options.lifeline.beat = 100ms;
  options.lifeline.dead_after = 60s;  // a busy machine is slow
  DeviceId id = parse_device_id(device);
  if (id.kind == DeviceKind::kCuda) id.ordinal = launch.local_rank;
  const auto ranks = open_communicator(launch, id, options);
  const std::string own =
      id.kind == DeviceKind::kCpu ? "cpu" : "cuda:" + std::to_string(id.ordinal);
  dies ? die(own, *ranks) : train_all(own, folder, *ranks);
  ranks->finish();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return weir::run_main("shared_program", [&] {
    if (count < 3) throw weir::UsageError("shared_program DEVICE FOLDER [killed]");
    return run(arguments[1], arguments[2], count > 3);
  });
}
