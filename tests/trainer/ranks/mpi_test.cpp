// Ranks as processes, started by the mpirun of each MPI that tools/setup installs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "../child_process.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

using testing::ChildProcess;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;

/// One MPI's way to start ranks.
struct Engine {
  std::string name;
  std::string program;
  std::vector<std::string> options;
  /// Keeps the launcher from ending the other ranks itself when one dies.
  std::vector<std::string> leave_others;
};

std::ostream& operator<<(std::ostream& out, const Engine& engine) { return out << engine.name; }

const Engine kOpenMpi{"Open MPI", "/usr/bin/mpirun.openmpi", {"--oversubscribe"}, {}};
const Engine kMpich{"MPICH", "/usr/bin/mpirun.mpich", {}, {"-disable-auto-cleanup"}};

class RanksByMpi : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    ASSERT_EQ(access(GetParam().program.c_str(), X_OK), 0)
        << GetParam().program << " is missing: run tools/setup";
  }

  /// Runs `count` ranks of the test's program.
  [[nodiscard]] static Finished run(int count, const std::vector<std::string>& words,
                                    const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = GetParam().options;
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"-n", std::to_string(count), WEIR_RANKS_PROGRAM});
    arguments.insert(arguments.end(), words.begin(), words.end());
    const char* const home = std::getenv("HOME");
    testing::Variables environment{
        {"PATH", "/usr/bin:/bin"},
        {"HOME", home != nullptr ? home : "/tmp"},
        // Containers run as root, have few processors and no other hosts.
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_btl", "self,vader"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"}};
#if WEIR_TEST_SANITIZED
    environment["ASAN_OPTIONS"] = "detect_leaks=0";  // MPI keeps memory until the process ends
#endif
    return ChildProcess(arguments, {.program = GetParam().program, .environment = environment})
        .wait();
  }
};

TEST_P(RanksByMpi, EveryCallIsRightAndSendsTheBytesOfItsFormula) {
  for (const int count : {2, 4}) {
    const Finished finished = run(count, {"calls"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    for (int rank = 0; rank < count; ++rank) {
      EXPECT_THAT(finished.out, HasSubstr("rank " + std::to_string(rank) + " of " +
                                          std::to_string(count) + " by " + GetParam().name));
    }
  }
}

TEST_P(RanksByMpi, OneRankUnderMpirunTakesTheSameWay) {
  const Finished finished = run(1, {"calls"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("rank 0 of 1 by " + GetParam().name + ": done, 0 bytes"));
}

TEST_P(RanksByMpi, EqualFieldsPassAndADifferenceEndsAllWithOneLine) {
  EXPECT_EQ(run(2, {"agree", "1"}).exit_code, 0);
  const Finished finished = run(3, {"agree", "7"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("ranks_program: the ranks differ in --seed: ranks 0, 1 have "
                                      "'1'; rank 2 has '7'"));
  EXPECT_THAT(finished.err, Not(HasSubstr(" ends: ")));
  EXPECT_THAT(finished.out, Not(HasSubstr("done")));
}

TEST_P(RanksByMpi, AStoppedRankEndsTheOthersWhichNameIt) {
  const Finished finished = run(3, {"fails", "stopped"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("rank 0 ends: rank 2 has not answered for 3.0 s"));
}

TEST_P(RanksByMpi, AKilledRankEndsTheOthersAndIsNamed) {
  const Finished finished = run(3, {"fails", "killed"}, GetParam().leave_others);
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, ::testing::AnyOf(HasSubstr("rank 2 ended before the others did"),
                                             HasSubstr("process rank 2 ")));
}

TEST_P(RanksByMpi, ARankThatFailsOrAbortsSaysWhyAndEndsTheOthers) {
  Finished finished = run(2, {"fails", "throws"}, GetParam().leave_others);
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("this rank has no more disk"));
  finished = run(2, {"fails", "aborts"}, GetParam().leave_others);
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("rank 1 ends: lost its GPU"));
}

TEST_P(RanksByMpi, ASlowRankIsNamedAndWaitedFor) {
  const Finished finished = run(2, {"slow"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("rank 0 waits for rank 1 in barrier since 0.1 s"));
}

TEST_P(RanksByMpi, ARankThatLivesButNeverComesEndsAll) {
  const Finished finished = run(2, {"never"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("rank 0 ends: waited for rank 1 in barrier for 1.0 s"));
}

INSTANTIATE_TEST_SUITE_P(Engines, RanksByMpi, ::testing::Values(kOpenMpi, kMpich),
                         [](const auto& engine) {
                           return engine.param.name == "MPICH" ? "Mpich" : "OpenMpi";
                         });

}  // namespace
}  // namespace weir
