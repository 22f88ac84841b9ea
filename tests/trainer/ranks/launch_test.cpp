#include "trainer/ranks/launch.hpp"

#include <gtest/gtest.h>

#include "support/environment.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using testing::environment_of;

TEST(RanksLaunch, OneRankWithoutALauncher) {
  EXPECT_EQ(find_launch(environment_of({})).launcher, Launcher::kNone);
  // Names that other programs use too do not make a rank alone.
  EXPECT_EQ(find_launch(environment_of({{"RANK", "3"}})).launcher, Launcher::kNone);
}

TEST(RanksLaunch, ReadsEachLaunchersVariables) {
  const Launch open = find_launch(environment_of({{"OMPI_COMM_WORLD_RANK", "2"},
                                                  {"OMPI_COMM_WORLD_SIZE", "4"},
                                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}));
  EXPECT_EQ(open.launcher, Launcher::kOpenMpi);
  EXPECT_EQ(open.rank, 2);
  EXPECT_EQ(open.size, 4);
  EXPECT_EQ(open.local_rank, 1);
  const Launch mpich = find_launch(environment_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}));
  EXPECT_EQ(mpich.launcher, Launcher::kMpich);
  EXPECT_EQ(mpich.local_rank, 1);
  const Launch torch = find_launch(environment_of({{"RANK", "1"},
                                                   {"WORLD_SIZE", "2"},
                                                   {"LOCAL_RANK", "0"},
                                                   {"MASTER_ADDR", "host"},
                                                   {"MASTER_PORT", "29500"}}));
  EXPECT_EQ(torch.launcher, Launcher::kTorchrun);
  EXPECT_EQ(torch.local_rank, 0);
  EXPECT_EQ(torch.address, "host");
  EXPECT_EQ(torch.port, 29500);
}

TEST(RanksLaunch, LeavesTorchrunItsPortWhereItServesIt) {
  EXPECT_EQ(find_launch(environment_of({{"RANK", "0"},
                                        {"WORLD_SIZE", "2"},
                                        {"MASTER_ADDR", "host"},
                                        {"MASTER_PORT", "29500"},
                                        {"TORCHELASTIC_USE_AGENT_STORE", "True"}}))
                .port,
            29501);
}

TEST(RanksLaunch, RefusesWhatIsNoPlace) {
  const auto message = [](const std::map<std::string, std::string>& variables) {
    return testing::message_of<UsageError>([&] { (void)find_launch(environment_of(variables)); });
  };
  EXPECT_EQ(message({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}),
            "PMI_RANK='2' is not allowed: a number from 0 to 1");
  EXPECT_EQ(message({{"PMI_RANK", "0"}, {"PMI_SIZE", "two"}}),
            "PMI_SIZE='two' is not allowed: a number from 1 to 4096");
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "1"}}),
            "MASTER_ADDR='' is not allowed: the machine of rank 0, as torchrun sets it");
  EXPECT_EQ(
      message(
          {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "host"}, {"MASTER_PORT", "70000"}}),
      "MASTER_PORT='70000' is not allowed: a number from 1 to 65535");
}

}  // namespace
}  // namespace weir
