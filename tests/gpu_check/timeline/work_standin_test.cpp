// The known work on the stand-in driver, which counts what is launched.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu_check/timeline/work.hpp"
#include "standin/standin.hpp"

namespace weir::gpu_check {
namespace {

class GpuTimelineWork : public ::testing::Test {
 protected:
  void SetUp() override { weir_standin_reset(); }
};

TEST_F(GpuTimelineWork, EachStretchSaysHowManyOperationsWereLaunched) {
  std::uint64_t kernels = 0;
  std::uint64_t copies = 0;
  std::uint64_t in_graphs = 0;
  std::uint64_t in_a_graph = 0;
  for (const Stretch& stretch : do_work(WorkSize::kSmall)) {
    (stretch.kind == TimelineKind::kKernel ? kernels : copies) += stretch.operations;
    if (stretch.name.find("graph") == std::string::npos) continue;
    in_graphs += stretch.operations;
    if (in_a_graph == 0) in_a_graph = stretch.operations;  // the first is one launch of it
  }
  EXPECT_GT(in_a_graph, 0U);
  EXPECT_EQ(in_graphs / in_a_graph, weir_standin_calls("cuGraphLaunch"));
  // A kernel of a graph is launched once, when the graph is captured.
  EXPECT_EQ(weir_standin_calls("cuLaunchKernel"), kernels - in_graphs + in_a_graph);
  EXPECT_EQ(weir_standin_calls("cuMemcpyHtoDAsync") + weir_standin_calls("cuMemcpyDtoHAsync") +
                weir_standin_calls("cuMemcpyDtoDAsync") + weir_standin_calls("cuMemcpyAsync"),
            copies);
}

TEST_F(GpuTimelineWork, EachStretchHasABatchOfItsOwnAndComesAfterTheOneBefore) {
  std::uint32_t batch = 0;
  std::uint64_t end = 0;
  for (const Stretch& stretch : do_work(WorkSize::kSmall)) {
    EXPECT_EQ(stretch.batch, ++batch) << stretch.name;
    EXPECT_GE(stretch.begin_ns, end);
    EXPECT_LE(1e-6 * static_cast<double>(stretch.begin_ns) + stretch.event_ms,
              1e-6 * static_cast<double>(stretch.end_ns) + 0.01)
        << "the events lie between the host's times";
    end = stretch.end_ns;
  }
  EXPECT_GT(batch, 10U);
}

}  // namespace
}  // namespace weir::gpu_check
