// NCCL with one rank, on a GPU and on the stand-in: the same code as with many.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/scheduler.hpp"
#include "trainer/ranks/open.hpp"
#include "trainer/wide/wide_ranks.hpp"

namespace weir {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(NcclOneRank, ReducesAndGathersOnTheStreamOfTheRanks) {
  if (dlopen("libnccl.so.2", RTLD_NOW) == nullptr) GTEST_SKIP() << "left out: " << dlerror();
  Device device = open_device("cuda");
  Pool pool(device.memory());
  const auto ranks =
      open_communicator({.launcher = Launcher::kTorchrun, .address = "127.0.0.1", .port = 1},
                        {.kind = DeviceKind::kCuda}, {});
  EXPECT_THAT(ranks->engine(), HasSubstr("NCCL 2."));
  {
    Scheduler scheduler(device, pool);
    const std::vector<float> host(5000, 3);
    const std::vector<Tensor> gradients{scheduler.copy_in(host, {5000}),
                                        scheduler.copy_in(host, {5000})};
    submit_all_reduce(scheduler, *ranks, gradients);
    const Tensor all = scheduler.empty({5000}, "all");
    scheduler.submit("all_gather",
                     {.reads = {gradients[0]}, .writes = {all}, .stream = kRanksStream},
                     [&ranks](Stream& stream, Inputs in, Outputs out) {
                       ranks->all_gather(stream, in[0], out[0]);
                     });
    EXPECT_THAT(scheduler.read(gradients[1]), Each(3));
    EXPECT_THAT(scheduler.read(all), Each(3));
    scheduler.wait_all();
  }
  EXPECT_EQ(ranks->traffic(), (Traffic{2, 0}));
  ranks->finish();
}

}  // namespace
}  // namespace weir
