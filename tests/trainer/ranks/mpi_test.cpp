// Ranks as processes, started by the mpirun of each MPI that tools/setup installs.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "../temporary_directory.hpp"
#include "mpirun.hpp"
#include "trainer/expect_parts.hpp"

namespace weir {
namespace {

using testing::Finished;
using ::testing::HasSubstr;
using testing::read_file;
using testing::succeeded;
using testing::TemporaryDirectory;

class RanksByMpi : public testing::ByMpi {
 protected:
  /// Runs `count` ranks of the test's program.
  [[nodiscard]] static Finished run(int count, std::vector<std::string> words) {
    words.insert(words.begin(), WEIR_RANKS_PROGRAM);
    return run_ranks(count, words);
  }
};

TEST_P(RanksByMpi, EveryCallIsRight) {
  for (const int count : {2, 4}) {
    const Finished finished = succeeded(run(count, {"calls"}));
    for (int rank = 0; rank < count; ++rank) {
      EXPECT_THAT(finished.out, HasSubstr("rank " + std::to_string(rank) + " of " +
                                          std::to_string(count) + " by " + GetParam().name));
    }
  }
}

TEST_P(RanksByMpi, OneRankUnderMpirunTakesTheSameWay) {
  const Finished finished = succeeded(run(1, {"calls"}));
  EXPECT_THAT(finished.out, HasSubstr("rank 0 of 1 by " + GetParam().name + ": done, 0 bytes"));
}

TEST_P(RanksByMpi, AStoppedRankEndsTheOthersWhichNameIt) {
  const Finished finished = run(3, {"fails", "stopped"});
  EXPECT_NE(finished.exit_code, 0);
  // The two others count by themselves; the first to end may take the second with it before it says
  // so.
  const std::string why = " ends: rank 2 has not answered for 3.0 s";
  EXPECT_THAT(finished.err, ::testing::AnyOf(HasSubstr("rank 0" + why), HasSubstr("rank 1" + why)));
}

TEST_P(RanksByMpi, ADyingRankEndsTheOthersWhichSayWhy) {
  struct Death {
    std::string how;
    std::string of_rank_2;  ///< what that rank says itself
    std::string of_rank_0;
  };
  for (const Death& death :
       {Death{"killed", "", "rank 0 ends: rank 2 ended before the others did"},
        Death{"throws", "this rank has no more disk", "rank 0 ends: rank 2 "},
        Death{"aborts", "rank 2 ends: lost its GPU", "rank 0 ends: rank 2 lost its GPU"}}) {
    SCOPED_TRACE(death.how);
    const TemporaryDirectory directory;
    const Finished finished =
        run_dying_ranks(3, {WEIR_RANKS_PROGRAM, "fails", death.how}, directory.file(""));
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_THAT(read_file(directory.file("error.2")), HasSubstr(death.of_rank_2));
    EXPECT_THAT(read_file(directory.file("error.0")), HasSubstr(death.of_rank_0));
    if (death.how == "aborts") {  // why comes before the news: the launcher ends who is left
      EXPECT_THAT(read_file(directory.file("seen.2")), HasSubstr(death.of_rank_2));
    }
  }
}

TEST_P(RanksByMpi, ASlowRankIsNamedAndWaitedFor) {
  const Finished finished = succeeded(run(2, {"slow"}));
  EXPECT_THAT(finished.err, HasSubstr("rank 0 waits for rank 1 in barrier since 0.1 s"));
}

TEST_P(RanksByMpi, ARankThatLivesButNeverComesEndsAll) {
  const Finished finished = run(2, {"never"});
  EXPECT_NE(finished.exit_code, 0);
  // Rank 0 says it, or rank 1, which heard it: MPICH's launcher may end either before its line is
  // out.
  EXPECT_THAT(finished.err, HasSubstr("waited for rank 1 in barrier for 1.0 s"));
}

INSTANTIATE_TEST_SUITE_P(Engines, RanksByMpi, ::testing::Values(testing::kOpenMpi, testing::kMpich),
                         testing::engine_name);

}  // namespace
}  // namespace weir
