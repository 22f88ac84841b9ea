// Training the wide network on several ranks, by the mpirun of each MPI: the ranks' weights and
// figures. What happens when one fails shows ../ranks/mpi_test.cpp.

#include "../ranks/mpirun.hpp"
#include "shared_results.hpp"
#include "trainer/expect_parts.hpp"

namespace weir::testing {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Engines, SharedTraining, ::testing::Values(kOpenMpi, kMpich), engine_name);

}  // namespace
}  // namespace weir::testing
