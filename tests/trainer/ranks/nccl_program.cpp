// One rank with a GPU of its own: reduces in buckets and gathers, as a step of training does, and
// checks the result. Exits with 1 if it is wrong.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"
#include "tools/program/run_main.hpp"
#include "trainer/ranks/agree.hpp"
#include "trainer/ranks/buckets.hpp"
#include "trainer/ranks/open.hpp"
#include "trainer/ranks/shards.hpp"

namespace {

using namespace weir;

void require_all(const std::vector<float>& values, float wanted) {
  const auto is_wanted = [wanted](float value) { return value == wanted; };
  if (std::ranges::all_of(values, is_wanted)) return;
  throw Error("a value is not " + std::to_string(wanted));
}

/// A tensor on the device with `value` everywhere.
Tensor filled(Scheduler& scheduler, std::size_t count, float value) {
  const std::vector<float> host(count, value);
  Tensor tensor = scheduler.copy_in(host, {count});
  scheduler.wait(tensor);  // the copy reads `host`
  return tensor;
}

void step(Scheduler& scheduler, Communicator& ranks) {
  const auto mine = static_cast<float>(ranks.rank() + 1);
  const auto size = static_cast<float>(ranks.size());
  const float sum = size * (size + 1) / 2;
  const std::vector<std::size_t> counts{3000, 5, 70'000};
  std::vector<Bytes> sizes;
  for (const std::size_t count : counts) sizes.push_back({count * sizeof(float)});
  BucketedReduce reduce(scheduler, ranks, make_buckets(sizes, kib(16)));
  const Traffic before = ranks.traffic();
  std::vector<Tensor> gradients;
  for (const std::size_t count : counts) {
    gradients.push_back(filled(scheduler, count, mine));
    reduce.add(gradients.back());
  }
  for (const Tensor& gradient : gradients) require_all(scheduler.read(gradient), sum);
  const std::uint64_t sent = ranks.traffic().bytes - before.bytes;
  const std::uint64_t wanted = all_reduce_bytes(3005, ranks.rank(), ranks.size()) +
                               all_reduce_bytes(70'000, ranks.rank(), ranks.size());
  if (sent != wanted) throw Error("sent " + std::to_string(sent) + " bytes");

  const Tensor part = filled(scheduler, 2000, mine);
  const Tensor all = scheduler.empty({2000 * static_cast<std::size_t>(ranks.size())}, "all");
  scheduler.submit("all_gather", {.reads = {part}, .writes = {all}, .stream = kRanksStream},
                   [&ranks](Stream& stream, Inputs in, Outputs out) {
                     ranks.all_gather(stream, in[0], out[0]);
                   });
  const std::vector<float> gathered = scheduler.read(all);
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    if (gathered[i] != static_cast<float>(i / 2000 + 1)) throw Error("gathered something else");
  }
}

int run(const std::string& seed) {
  const Launch launch = find_launch();
  Device device = open_device("cuda:" + std::to_string(launch.local_rank));
  Pool pool(device.memory());
  const auto ranks =
      open_communicator(launch, {.kind = DeviceKind::kCuda, .ordinal = launch.local_rank}, {});
  Scheduler scheduler(device, pool);
  const bool last = ranks->rank() == ranks->size() - 1;
  agree(*ranks, {{"--seed", last ? seed : "1"}});
  for (int again = 0; again < 3; ++again) step(scheduler, *ranks);
  scheduler.wait_all();
  const std::string engine = ranks->engine();
  ranks->finish();
  std::cout << "rank " + std::to_string(ranks->rank()) + " of " + std::to_string(ranks->size()) +
                   " by " + engine + ": done\n";
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string seed = count > 1 ? arguments[1] : "1";
  return weir::run_main("nccl_program", [&] { return run(seed); });
}
