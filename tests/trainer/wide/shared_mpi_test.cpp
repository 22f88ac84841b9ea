// Training the wide network on several ranks, by the mpirun of each MPI: the ranks' weights and
// figures, and what happens when one fails.

#include <gmock/gmock.h>

#include "../ranks/mpirun.hpp"
#include "shared_results.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;

class SharedTraining : public ByMpi {};

TEST_P(SharedTraining, IsAsOfOneProcessAndSendsTheBytesOfItsFormula) {
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const TemporaryDirectory directory;
    const Finished finished = run_ranks(ranks, {WEIR_SHARED_PROGRAM, "cpu", directory.file("")});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    expect_as_alone(finished.out, directory.file(""), ranks);
  }
}

TEST_P(SharedTraining, AKilledRankEndsTheOthersWhichNameIt) {
  const TemporaryDirectory directory;
  const Finished finished =
      run_dying_ranks(3, {WEIR_SHARED_PROGRAM, "cpu", "", "killed"}, directory.file(""));
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(read_file(directory.file("error.0")),
              HasSubstr("rank 2 ended before the others did"));
}

INSTANTIATE_TEST_SUITE_P(Engines, SharedTraining, ::testing::Values(kOpenMpi, kMpich), engine_name);

/// By one engine: it takes as long as a rank may be silent.
TEST(SharedTrainingByMpich, AStoppedRankEndsTheOthersWhichNameIt) {
  const Finished finished =
      start_mpirun(kMpich, {"-n", "2", WEIR_SHARED_PROGRAM, "cpu", "", "stopped"}).wait();
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("rank 0 ends: rank 1 has not answered for 3.0 s"));
}

}  // namespace
}  // namespace weir::testing
