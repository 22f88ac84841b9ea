// Training the wide network on several ranks, by the mpirun of each MPI: the ranks' weights and
// figures, and what happens when one fails.

#include <gmock/gmock.h>

#include "../ranks/mpirun.hpp"
#include "shared_results.hpp"
#include "trainer/expect_parts.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;

class SharedTraining : public ByMpi {};

TEST_P(SharedTraining, IsAsOfOneProcessAndSendsTheBytesOfItsFormula) {
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const TemporaryDirectory directory;
    const Finished finished =
        succeeded(run_ranks(ranks, {WEIR_SHARED_PROGRAM, "cpu", directory.file("")}));
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

}  // namespace
}  // namespace weir::testing
