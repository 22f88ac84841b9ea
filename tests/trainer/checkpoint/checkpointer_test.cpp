// Checkpoints beside a training: of one batch each, skipped rather than late, and given up without
// harm.

#include "trainer/checkpoint/checkpointer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "counting_run.hpp"
#include "support/file_size_limit.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"
#include "support/print.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

TEST(CheckpointSchedule, OneIsDueForTheFirstOfItsReasonsIfABatchIsNew) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  const CheckpointSchedule by_batches{.batches = 3};
  const CheckpointSchedule by_time{.time = minutes(2)};
  const CheckpointSchedule by_both{.batches = 3, .time = minutes(2)};
  EXPECT_FALSE(due({}, 1'000'000, minutes(1'000'000)));
  for (const CheckpointSchedule& schedule : {by_batches, by_both}) {
    EXPECT_FALSE(due(schedule, 2, seconds(119)));
    EXPECT_TRUE(due(schedule, 3, seconds(0)));
    EXPECT_TRUE(due(schedule, 4, seconds(0)));
  }
  for (const CheckpointSchedule& schedule : {by_time, by_both}) {
    EXPECT_FALSE(due(schedule, 1, seconds(119)));
    EXPECT_TRUE(due(schedule, 1, seconds(120)));
    EXPECT_FALSE(due(schedule, 0, minutes(1000))) << "nothing is new";
  }
  EXPECT_FALSE(due(by_batches, 2, minutes(1000)));
  EXPECT_FALSE(due(by_time, 1000, seconds(119)));
}

class CheckpointerTest : public ::testing::Test {
 protected:
  [[nodiscard]] CheckpointOptions options(std::uint64_t every = 1) const {
    CheckpointOptions options;
    options.path = path;
    options.schedule.batches = every;
    return options;
  }
  /// Trains a batch and lets `checkpointer` look.
  static void train(CountingRun& run, Checkpointer& checkpointer) {
    run.batch();
    checkpointer.after_batch(run.done(), [&] { return run.state(); });
  }
  [[nodiscard]] static bool finish(const CountingRun& run, Checkpointer& checkpointer) {
    return checkpointer.finish(run.done(), [&] { return run.state(); });
  }

  const TemporaryDirectory directory;
  const std::string path = directory.file("run.ckp");
};

TEST_F(CheckpointerTest, EachIsOfOneBatchWhileTheTrainingGoesOn) {
  Rig rig;
  CountingRun run(rig, {kChunkElements + 7, 5, 100'000});
  run.warm_up();
  Checkpointer checkpointer(rig.scheduler(), options(5));
  std::uint64_t seen = 0;
  while (run.done() < 400 && seen < 4) {
    train(run, checkpointer);
    const auto last = checkpointer.statistics().last;
    if (!last || *last == seen) continue;
    const std::uint64_t batch = batch_in(path);  // perhaps the next one already
    EXPECT_GE(batch, *last);
    EXPECT_EQ(batch % 5, 0U);
    seen = batch;
  }
  EXPECT_TRUE(finish(run, checkpointer));
  EXPECT_EQ(batch_in(path), run.done());
  const CheckpointStatistics statistics = checkpointer.statistics();
  EXPECT_GE(statistics.written, 2U);
  EXPECT_EQ(statistics.held, 0U);
  EXPECT_EQ(statistics.failed, 0U);
  EXPECT_EQ(directory.entries(), 1U);
}

TEST_F(CheckpointerTest, TheTrainingGoesOnWhileOneIsNotYetReadBack) {
  Rig rig;
  CountingRun run(rig, {1000, 5});
  run.warm_up();
  Checkpointer checkpointer(rig.scheduler(), options(3));
  Gate& gate = rig.hold(StreamRole::kCopyOut);
  for (int i = 0; i < 10; ++i) train(run, checkpointer);  // the 3rd, 6th, 9th and 12th are due
  rig->wait(run.tensors()[0].tensor);
  EXPECT_EQ(checkpointer.statistics().written, 0U);
  EXPECT_EQ(checkpointer.statistics().skipped, 3U);
  EXPECT_FALSE(std::filesystem::exists(path));
  gate.open();
  // The one begun is completed, then the last is written.
  std::uint64_t asked = 0;
  EXPECT_TRUE(checkpointer.finish(run.done(), [&] {
    EXPECT_EQ(batch_in(path), 3U);
    ++asked;
    return run.state();
  }));
  EXPECT_EQ(asked, 1U);
  EXPECT_EQ(batch_in(path), 12U);
  EXPECT_EQ(checkpointer.statistics().written, 2U);
  EXPECT_EQ(checkpointer.statistics().last, 12U);
}

TEST_F(CheckpointerTest, WithoutRoomForCopiesTheTrainingWaitsAndTheFileIsOfOneBatch) {
  constexpr Bytes kEach = CountingRun::kBetween;
  constexpr std::size_t kSize = kEach.count / sizeof(float);
  for (const std::uint64_t times : {6U, 8U}) {  // for none of the copies, and for some
    Rig rig({.budget = kEach * times});
    CountingRun run(rig, {kSize, kSize, kSize, kSize});
    run.warm_up();
    Checkpointer checkpointer(rig.scheduler(), options());
    train(run, checkpointer);
    EXPECT_EQ(checkpointer.statistics().held, 1U);
    for (int i = 0; i < 10; ++i) run.batch();
    // Not later than now, since a new one would be of a later batch.
    while (checkpointer.statistics().written == 0) std::this_thread::yield();
    EXPECT_EQ(batch_in(path), 3U);
  }
}

TEST_F(CheckpointerTest, FinishWritesTheLastBatchOnceAndOnlyIfItIsNew) {
  Rig rig;
  CountingRun run(rig, {10});
  run.batch();
  CheckpointOptions resumed = options(0);
  resumed.begun = 1;
  Checkpointer checkpointer(rig.scheduler(), resumed);
  EXPECT_TRUE(finish(run, checkpointer));
  EXPECT_FALSE(std::filesystem::exists(path)) << "it resumed from batch 1";
  run.batch();
  EXPECT_TRUE(finish(run, checkpointer));
  EXPECT_TRUE(finish(run, checkpointer));
  EXPECT_EQ(batch_in(path), 2U);
  EXPECT_EQ(checkpointer.statistics().written, 1U);
}

TEST_F(CheckpointerTest, AFullDiskKeepsTheOldFileAndTheTraining) {
  Rig rig;
  CountingRun run(rig, {100'000});
  Checkpointer checkpointer(rig.scheduler(), options());
  run.batch();
  ASSERT_TRUE(finish(run, checkpointer));
  run.batch();
  {
    const LogCapture log;
    const FileSizeLimit limit(100'000);
    EXPECT_FALSE(finish(run, checkpointer));
    ASSERT_EQ(log.containing("").size(), 1U);
    const std::string line = log.containing("")[0];
    EXPECT_TRUE(line.starts_with("no checkpoint of batch 2: --checkpoint='" + path)) << line;
    expect_parts(line, {"(File too large); the file keeps that of batch 1"});
  }
  EXPECT_EQ(checkpointer.statistics().failed, 1U);
  EXPECT_EQ(batch_in(path), 1U);
  EXPECT_EQ(directory.entries(), 1U) << "nothing stays beside it";
  EXPECT_TRUE(finish(run, checkpointer)) << "with room again";
  EXPECT_EQ(batch_in(path), 2U);
}

TEST_F(CheckpointerTest, ATensorLostToAnErrorIsAWarning) {
  Rig rig;
  CountingRun run(rig, {10, 10});
  Checkpointer checkpointer(rig.scheduler(), options());
  run.batch();
  ASSERT_TRUE(finish(run, checkpointer));
  const Tensor lost = run.tensors()[1].tensor;
  rig->submit("break", {.reads = {lost}, .writes = {lost}}, broken("no result"));
  run.batch();
  const LogCapture log;
  EXPECT_FALSE(finish(run, checkpointer));
  ASSERT_EQ(log.containing("").size(), 1U);
  EXPECT_NE(log.containing("")[0].find("no result"), std::string::npos) << log.containing("")[0];
  EXPECT_EQ(batch_in(path), 1U);
  settle(rig);
}

TEST_F(CheckpointerTest, AtItsEndARunGivesUpWhatTakesTooLong) {
  Rig rig;
  CountingRun run(rig, {10});
  CheckpointOptions hurried = options();
  hurried.most_at_end = {};
  Checkpointer checkpointer(rig.scheduler(), hurried);
  run.batch();
  const LogCapture log;
  EXPECT_FALSE(finish(run, checkpointer));
  ASSERT_EQ(log.containing("").size(), 1U);
  EXPECT_EQ(log.containing("")[0],
            "no checkpoint of batch 1: it took longer than a run may take at its end");
  EXPECT_EQ(directory.entries(), 0U);
}

TEST_F(CheckpointerTest, DestroyedWhileItWritesItLeavesTheOldFileOrTheNew) {
  Rig rig;
  CountingRun run(rig, {kChunkElements + 1, 10});
  run.warm_up();
  const LogCapture log;
  Gate& gate = rig.hold(StreamRole::kCopyOut);
  std::thread opener;
  {
    Checkpointer checkpointer(rig.scheduler(), options());
    train(run, checkpointer);
    opener = std::thread([&] {
      give_others_a_chance();
      gate.open();
    });
  }
  opener.join();
  if (directory.entries() != 0) {
    EXPECT_EQ(batch_in(path), 3U);
  }
  EXPECT_EQ(directory.entries() + log.containing("").size(), 1U) << "written, or a warning";
}

TEST_F(CheckpointerTest, ByTimeOneIsDueOncePerInterval) {
  Rig rig;
  CountingRun run(rig, {10});
  std::atomic<int> minute = 0;
  CheckpointOptions timed = options(0);
  timed.schedule.time = std::chrono::minutes(10);
  timed.now = [&] { return std::chrono::steady_clock::time_point(std::chrono::minutes(minute)); };
  Checkpointer checkpointer(rig.scheduler(), timed);
  std::vector<std::uint64_t> asked;
  for (minute = 0; minute < 40; ++minute) {
    run.batch();
    checkpointer.after_batch(run.done(), [&] {
      asked.push_back(run.done());
      return run.state();
    });
    while (checkpointer.statistics().written < asked.size()) std::this_thread::yield();
  }
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{11, 21, 31}));
  EXPECT_EQ(checkpointer.statistics().skipped, 0U);
}

TEST_F(CheckpointerTest, AFileThatCannotBeWrittenIsRefusedBeforeTheTraining) {
  Rig rig;
  CheckpointOptions wrong = options();
  wrong.path = directory.file("missing/run.ckp");
  const std::string message =
      message_of<UsageError>([&] { const Checkpointer checkpointer(rig.scheduler(), wrong); });
  EXPECT_TRUE(message.starts_with("--checkpoint='" + wrong.path)) << message;
}

TEST_F(CheckpointerTest, AStateThatCannotBeInAHeaderIsRefusedAtOnce) {
  Rig rig;
  CountingRun run(rig, {10});
  run.batch();
  Checkpointer checkpointer(rig.scheduler(), options());
  const auto twice = [&] {
    CheckpointState state = run.state();
    state.tensors.push_back(state.tensors[0]);
    return state;
  };
  EXPECT_THROW(checkpointer.after_batch(1, twice), UsageError);
  EXPECT_THROW((void)checkpointer.finish(1, twice), UsageError);
}

// A run that resumes has the tensors of the run that was stopped, bit for bit, or does not begin.

class ResumeTest : public CheckpointerTest {
 protected:
  /// Trains so many batches and writes a checkpoint of the last.
  void save(std::size_t elements, int batches) {
    Rig rig;
    CountingRun run(rig, {elements, 5});
    for (int i = 0; i < batches; ++i) run.batch();
    Checkpointer checkpointer(rig.scheduler(), options(0));
    EXPECT_TRUE(finish(run, checkpointer));
  }
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

// How much of a model is copied beside a training, and that the training never fails for it.

constexpr std::size_t kBetweenSize = CountingRun::kBetween.count / sizeof(float);

TEST(Snapshot, WithRoomEverythingIsCopiedAndStaysAsItIs) {
  Rig rig;
  CountingRun run(rig, {kBetweenSize, 3});
  run.warm_up();
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 0U);
  run.batch();
  for (const Tensor& tensor : snapshot.tensors) EXPECT_EQ(rig->read(tensor).back(), 2);
  EXPECT_EQ(rig->read(run.tensors()[0].tensor).back(), 3);
}

TEST(Snapshot, IsOfTheBatchBeforeItThoughTheDeviceIsLate) {
  Rig rig({.run_ahead = {.batches = std::nullopt}});
  CountingRun run(rig, {3, 4});
  run.warm_up();
  Gate& batches = rig.hold(StreamRole::kCompute);
  run.batch();
  Gate& copies = rig.hold(StreamRole::kCompute2);
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 0U);
  run.batch();
  batches.open();
  give_others_a_chance();
  copies.open();
  for (const Tensor& tensor : snapshot.tensors) {
    EXPECT_EQ(rig->read(tensor), std::vector<float>(tensor.shape().elements(), 3));
  }
}

TEST(Snapshot, BeforeTheFirstBatchHasShownWhatItNeedsNothingIsCopied) {
  Rig rig;
  CountingRun run(rig, {3, 4});
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 2U);
  EXPECT_EQ(snapshot.tensors.size(), 2U);
}

// From a budget that just runs the training to one with room for all copies.
TEST(Snapshot, TheTrainingBesideItNeverFailsWhateverTheBudget) {
  std::size_t least = 9;
  for (const Policy policy : kAllPolicies) {
    std::size_t before = 9;
    for (std::uint64_t times = 6; times <= 12; ++times) {
      SCOPED_TRACE(times);
      Rig rig({.budget = CountingRun::kBetween * times, .policy = policy});
      CountingRun run(rig, {kBetweenSize, kBetweenSize, kBetweenSize, kBetweenSize});
      run.warm_up();
      const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
      EXPECT_LE(snapshot.held, before) << "with more room";
      before = snapshot.held;
      const std::uint64_t then = run.done();
      for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(run.batch());
      for (std::size_t i = snapshot.held; i < 4; ++i) {
        EXPECT_EQ(rig->read(snapshot.tensors[i]).front(), static_cast<float>(then));
      }
      EXPECT_NO_THROW(rig->wait_all());
      if (times == 6) {
        EXPECT_EQ(snapshot.held, 4U) << "two batches need the rest";
      }
    }
    least = std::min(least, before);
  }
  EXPECT_EQ(least, 0U);
}

TEST(Snapshot, WithoutRoomForAllTheLastTensorsAreCopied) {
  Rig rig({.budget = CountingRun::kBetween * 8});
  CountingRun run(rig, {kBetweenSize, kBetweenSize, kBetweenSize, kBetweenSize});
  run.warm_up();
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 2U);
  run.batch();
  EXPECT_EQ(rig->read(snapshot.tensors[1]).front(), 3) << "the run's own";
  EXPECT_EQ(rig->read(snapshot.tensors[2]).front(), 2);
  EXPECT_EQ(rig->read(snapshot.tensors[3]).front(), 2);
}

}  // namespace
}  // namespace weir::testing
