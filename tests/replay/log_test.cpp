// Traces of our own allocation log.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "../trainer/temporary_directory.hpp"
#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log.hpp"
#include "allocator/pool.hpp"
#include "gzip.hpp"
#include "support/manual_progress.hpp"
#include "support/message_of.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::Trace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReplayLog : public ::testing::Test {
 protected:
  ReplayLog() { log_.emplace("--log", path_, gib(1)); }

  void write(AllocationEvent event, std::uint64_t address, std::uint64_t bytes = 0,
             std::uint64_t stream = 3, std::uint16_t pool = 1) {
    log_->write({.sequence = ++sequence_,
                 .address = address,
                 .bytes = bytes,
                 .stream = stream,
                 .pool = pool,
                 .event = event});
  }
  /// The traces once the process has ended the log.
  [[nodiscard]] std::vector<Trace> ended() {
    log_.reset();
    return replay::read_traces(path_);
  }
  /// The traces as a crash would leave them now.
  [[nodiscard]] std::vector<Trace> crashed() const { return replay::read_traces(path_); }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.file("log");
  std::optional<AllocationLog> log_;
  std::uint64_t sequence_ = 0;
};

TEST_F(ReplayLog, HasWhatThePoolWasAskedAndNotWhatItDid) {
  write(AllocationEvent::kPool, 0, 1 << 30);
  write(AllocationEvent::kGrow, 512, 4096);
  write(AllocationEvent::kAllocate, 512, 100);
  write(AllocationEvent::kUse, 512, 0, 8);
  write(AllocationEvent::kFree, 512, 100, 8);
  write(AllocationEvent::kFailure, 0, 1 << 20);
  write(AllocationEvent::kAllocate, 512, 50);
  write(AllocationEvent::kRelease, 512, 4096);
  const std::vector<Trace> traces = ended();
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_THAT(traces[0].operations, ElementsAre(allocate(0, 100, 0), use(0, 100, 1),
                                                release(0, 100, 1), allocate(1, 50, 0)));
  EXPECT_EQ(traces[0].cut, "");
  EXPECT_EQ(traces[0].name, path_);
  EXPECT_THAT(traces[0].notes, ElementsAre("1 request failed in the recording: skipped"));
}

TEST_F(ReplayLog, IsATraceForEachPoolThatAllocated) {
  write(AllocationEvent::kAllocate, 512, 100, 3, 1);
  write(AllocationEvent::kPool, 0, 1 << 30, 0, 2);
  write(AllocationEvent::kAllocate, 512, 200, 3, 3);
  const std::vector<Trace> traces = ended();
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].name, path_ + ", pool 1");
  EXPECT_EQ(traces[1].name, path_ + ", pool 3");
  EXPECT_THAT(traces[1].operations, ElementsAre(allocate(0, 200)));
}

TEST_F(ReplayLog, OfACrashIsReadAndSaysSo) {
  write(AllocationEvent::kAllocate, 512, 100);
  const std::vector<Trace> traces = crashed();
  EXPECT_THAT(traces.at(0).operations, ElementsAre(allocate(0, 100)));
  EXPECT_EQ(traces[0].cut, "the log has no end: its process crashed or is still running");
}

TEST_F(ReplayLog, OfACrashIsReadUpToTheFirstEventThatDoesNotFit) {
  write(AllocationEvent::kAllocate, 512, 100);
  write(AllocationEvent::kAllocate, 512, 200);  // its free was not written
  write(AllocationEvent::kAllocate, 1024, 300);
  const std::vector<Trace> traces = crashed();
  EXPECT_THAT(traces.at(0).operations, ElementsAre(allocate(0, 100)));
  EXPECT_THAT(traces[0].cut, HasSubstr("up to event 2 of pool 1 (an allocation at 0x200, which is "
                                       "live already)"));
}

TEST_F(ReplayLog, ThatIsWholeMustFit) {
  write(AllocationEvent::kAllocate, 512, 100);
  write(AllocationEvent::kFree, 1024, 100);
  EXPECT_EQ(message_of<UsageError>([&] { (void)ended(); }),
            path_ + ", pool 1: event 2 of pool 1: a free of 0x400, where nothing is live");
}

TEST_F(ReplayLog, WithoutAllocationsIsRefused) {
  write(AllocationEvent::kPool, 0, 1 << 30);
  EXPECT_EQ(message_of<UsageError>([&] { (void)ended(); }), path_ + ": the log has no allocations");
}

TEST_F(ReplayLog, MayBePackedAndItsGzipMayEndEarly) {
  for (std::uint64_t i = 1; i <= 500; ++i) write(AllocationEvent::kAllocate, i * 512, i);
  log_.reset();
  const std::string packed = gzip_of(read_file(path_));
  EXPECT_EQ(replay::read_traces(replay::unpack("t", packed)).at(0).operations.size(), 500U);
  const Trace cut =
      replay::read_traces(replay::unpack("t", packed.substr(0, packed.size() / 2))).at(0);
  EXPECT_EQ(cut.cut, "the gzip data ends early");
  EXPECT_LT(cut.operations.size(), 500U);
  EXPECT_GT(cut.operations.size(), 0U);
}

TEST(ReplayLogOfAPool, GivesBackWhatWasAsked) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("log");
  ManualProgress progress;
  SimulatedUpstream upstream(gib(1));
  std::vector<replay::Operation> asked;
  {
    PoolOptions options;
    options.log = path;
    Pool pool({upstream, progress}, options);
    const StreamId stream = StreamId::next();
    const StreamId other = StreamId::next();
    void* const a = pool.allocate({1000}, stream);
    asked.push_back(allocate(0, 1000, 0));
    void* const b = pool.allocate({5000}, other);
    asked.push_back(allocate(1, 5000, 1));
    pool.record_use(a, other);
    asked.push_back(use(0, 1000, 1));
    pool.deallocate(a, stream);
    asked.push_back(release(0, 1000, 0));
    pool.deallocate(b, other);
    asked.push_back(release(1, 5000, 1));
  }
  const Trace trace = replay::read_traces(path).at(0);
  EXPECT_EQ(trace.operations, asked);
}

}  // namespace
}  // namespace weir::testing
