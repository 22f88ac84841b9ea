// A run that resumes has the tensors of the run that was stopped, bit for bit, or does not begin.

#include <gtest/gtest.h>

#include "counting_run.hpp"
#include "support/message_of.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

class ResumeTest : public ::testing::Test {
 protected:
  /// Trains so many batches and writes a checkpoint of the last.
  void save(std::size_t elements, int batches) {
    Rig rig;
    CountingRun run(rig, {elements, 5});
    for (int i = 0; i < batches; ++i) run.batch();
    CheckpointOptions options;
    options.path = path;
    Checkpointer checkpointer(rig.scheduler(), options);
    EXPECT_TRUE(checkpointer.finish(run.done(), [&] { return run.state(); }));
  }

  const TemporaryDirectory directory;
  const std::string path = directory.file("run.ckp");
};

TEST_F(ResumeTest, FillsTheTensorsOfTheRun) {
  save(kChunkElements + 3, 4);
  Rig rig;
  rig.backend.stages_copies = true;  // as a GPU's
  const CountingRun run(rig, {kChunkElements + 3, 5});
  const CheckpointReader file("--resume", path);
  resume(file, rig.scheduler(), run.state());
  EXPECT_EQ(file.number("batch"), 4U);
  for (const NamedTensor& named : run.tensors()) {
    const std::vector<float> elements = rig->read(named.tensor);
    EXPECT_EQ(std::ranges::count(elements, 4.0F), std::ssize(elements));
  }
  expect_idle(rig);
}

TEST_F(ResumeTest, FillsTensorsThatNothingHasWritten) {
  save(10, 2);
  Rig rig;
  const CheckpointState run{.settings = {{"run", "counting"}},
                            .position = {},
                            .tensors = {{"t0", rig->empty({10})}, {"t1", rig->empty({5})}}};
  resume(CheckpointReader("--resume", path), rig.scheduler(), run);
  EXPECT_EQ(rig->read(run.tensors[0].tensor), std::vector<float>(10, 2));
  EXPECT_EQ(rig->read(run.tensors[1].tensor), std::vector<float>(5, 2));
}

TEST_F(ResumeTest, AnotherNetworksFileChangesNothing) {
  save(10, 2);
  Rig rig;
  const CountingRun run(rig, {11, 5});
  const CheckpointReader file("--resume", path);
  const std::string message =
      message_of<UsageError>([&] { resume(file, rig.scheduler(), run.state()); });
  EXPECT_TRUE(message.ends_with("expected tensor t0=11 as in this run, found tensor t0=10"))
      << message;
  EXPECT_EQ(rig->read(run.tensors()[0].tensor), std::vector<float>(11, 0));
}

TEST_F(ResumeTest, ADamagedSectionIsRefusedAndTheFileStays) {
  save(10, 2);
  std::string bytes = read_file(path);
  bytes[bytes.size() - 6] ^= 1;
  write_file(path, bytes);
  Rig rig;
  const CountingRun run(rig, {10, 5});
  const CheckpointReader file("--resume", path);
  const std::string message =
      message_of<UsageError>([&] { resume(file, rig.scheduler(), run.state()); });
  EXPECT_NE(message.find("at offset " + std::to_string(bytes.size() - 4)), std::string::npos);
  EXPECT_NE(message.find("tensor t1"), std::string::npos) << message;
  EXPECT_EQ(read_file(path), bytes);
}

}  // namespace
}  // namespace weir::testing
