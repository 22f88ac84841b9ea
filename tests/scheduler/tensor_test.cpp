// Tensors: when they get memory, when they free it, and what can be read from them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bytes allocated(Rig& rig) { return rig.pool.statistics().allocated.current; }

TEST(Shape, HasOneToFourExtentsAboveZeroThatFitMemory) {
  EXPECT_EQ((Shape{3, 4}.elements()), 12U);
  EXPECT_EQ((Shape{2, 3, 4, 5}.bytes()), Bytes{480});
  EXPECT_EQ((Shape{1024, 512}.to_string()), "1024x512");
  EXPECT_THROW((Shape{1, 2, 3, 4, 5}), UsageError);
  EXPECT_THROW((Shape{3, 0}), UsageError);
  EXPECT_THROW((Shape{SIZE_MAX, 2}), UsageError);
  EXPECT_THROW(Shape(std::initializer_list<std::size_t>{}), UsageError);
}

TEST(Tensor, GetsItsMemoryWithItsFirstWriter) {
  Rig rig;
  const Tensor tensor = rig->empty(shape_of(kib(64)));
  EXPECT_EQ(allocated(rig), Bytes{});
  rig->submit("write", {.writes = {tensor}}, fill(1));
  EXPECT_EQ(allocated(rig), kib(64));
  rig->submit("write", {.writes = {tensor}}, fill(2));
  EXPECT_EQ(allocated(rig), kib(64)) << "and keeps it";
}

TEST(Tensor, TheLastHandleFreesAtOnceThoughTheDeviceIsLate) {
  Rig rig;
  rig.hold(StreamRole::kCompute);
  std::optional<Tensor> tensor = rig.filled(kib(64), 1);
  std::optional<Tensor> copy = *tensor;
  tensor.reset();
  EXPECT_EQ(allocated(rig), kib(64));
  copy.reset();
  EXPECT_EQ(allocated(rig), Bytes{});
  EXPECT_EQ(rig.pool.statistics().cached.current, kib(64)) << "its own stream may have it now";
}

TEST(Tensor, FreedByAnOperationStillQueuedItsContentsAreSafe) {
  Rig rig;
  Gate& gate = rig.hold(StreamRole::kCompute);
  const Tensor sum = rig->empty({1});
  {
    const Tensor tensor = rig.filled(kib(64), 3);
    rig->submit("sum", {.reads = {tensor}, .writes = {sum}},
                [](Stream&, Inputs in, Outputs out) { out[0][0] = in[0].front() + in[0].back(); });
  }
  const Tensor reuser = rig.filled(kib(64), 100);  // the same block, later in the same stream
  EXPECT_EQ(rig.pool.statistics().hits, 1U);
  gate.open();
  EXPECT_THAT(rig->read(sum), ElementsAre(6));
}

TEST(Tensor, AHandleThatOutlivesItsSchedulerIsHarmless) {
  Tensor large;
  Tensor small;
  Tensor unwritten;
  {
    Rig rig;
    large = rig.filled(kib(64), 1);
    small = rig.filled({4}, 1, StreamRole::kCompute2);
    unwritten = rig->empty({3});
    rig.end();
    EXPECT_EQ(allocated(rig), Bytes{}) << "their memory went with the scheduler";
    const Tensor copy = large;
    EXPECT_EQ(copy.shape(), shape_of(kib(64)));
  }
  EXPECT_EQ(unwritten.shape(), (Shape{3}));
}

TEST(Tensor, AnEmptyHandleSaysSo) {
  Rig rig;
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_THROW((void)none.shape(), UsageError);
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { rig->submit("op", {.reads = {none}}, nothing()); },
                                          [&] { rig->submit("op", {.writes = {none}}, nothing()); },
                                          [&] { (void)rig->read(none); }, [&] { rig->wait(none); },
                                          [&] { (void)rig->written(none); }}) {
    EXPECT_THAT(message_of<UsageError>(call), HasSubstr("empty tensor handle"));
  }
  EXPECT_THROW((void)rig->empty({}), UsageError);
  expect_idle(rig);
}

TEST(Tensor, OfAnotherSchedulerIsRefused) {
  Rig rig;
  Rig other;
  const Tensor theirs = other.filled(kib(4), 1);
  EXPECT_THAT(message_of<UsageError>([&] { rig->submit("mix", {.reads = {theirs}}, nothing()); }),
              AllOf(HasSubstr("mix"), HasSubstr("another scheduler")));
  EXPECT_THROW((void)rig->read(theirs), UsageError);
  EXPECT_THROW(rig->wait(theirs), UsageError);
}

TEST(Tensor, ReadingWhatWasNeverWrittenNamesOperationAndTensorAndChangesNothing) {
  Rig rig;
  const Tensor never = rig->empty({8}, "ghost");
  const Tensor out = rig->empty(shape_of(kib(64)));
  const MemoryInfo before = rig->memory_info();
  EXPECT_THAT(message_of<UsageError>(
                  [&] { rig->submit("peek", {.reads = {never}, .writes = {out}}, nothing()); }),
              AllOf(HasSubstr("peek"), HasSubstr("ghost")));
  EXPECT_EQ(rig->memory_info().allocated, before.allocated);
  EXPECT_EQ(rig->memory_info().reserved, before.reserved) << "it was not even asked for memory";
  EXPECT_EQ(rig->written(out).sequence, 0U) << "the output has no writer";
  EXPECT_THROW((void)rig->read(out), UsageError);
  EXPECT_THAT(message_of<UsageError>([&] { (void)rig->read(never); }), HasSubstr("ghost"));
  rig->submit("write", {.writes = {out}}, fill(4));
  EXPECT_THAT(rig->read(out), Each(4));
}

TEST(Tensor, AnOperationWithoutAKernelIsRefused) {
  Rig rig;
  EXPECT_THAT(message_of<UsageError>([&] { rig->submit("hollow", {}, Kernel{}); }),
              HasSubstr("hollow"));
  expect_idle(rig);
}

TEST(Tensor, CopiesComeInAndAreReadBack) {
  Rig rig;
  std::vector<float> host{1, 2, 3, 4, 5, 6};
  const Tensor tensor = rig->copy_in(host, {2, 3});
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  const Point copied = rig->written(tensor);
  EXPECT_EQ(rig->read(tensor), host);
  EXPECT_TRUE(rig->reached(copied));
  EXPECT_THAT(message_of<UsageError>([&] { (void)rig->copy_in(host, {5}); }),
              AllOf(HasSubstr("6"), HasSubstr("5")));
}

TEST(Tensor, IsUpdatedInPlaceWhenItStandsInBothLists) {
  Rig rig;
  const Tensor tensor = rig.filled(kib(4), 1);
  for (int i = 0; i < 10; ++i) {
    const StreamRole role = kAllRoles.at(static_cast<std::size_t>(i) % kStreamRoles);
    rig->submit("add", {.reads = {tensor}, .writes = {tensor}, .stream = role}, add(2));
  }
  EXPECT_THAT(rig->read(tensor), Each(21));
}

TEST(Tensor, MayBeListedTwice) {
  Rig rig;
  const Tensor tensor = rig->empty({4});
  rig->submit("both", {.writes = {tensor, tensor}}, [](Stream&, Inputs, Outputs out) {
    std::ranges::fill(out[0], 1.0F);
    std::ranges::fill(out[1], 2.0F);
  });
  rig->submit("add", {.reads = {tensor, tensor}, .writes = {tensor}}, add(1));
  EXPECT_THAT(rig->read(tensor), Each(3));
  EXPECT_EQ(rig.pool.statistics().allocated.current, SlabAllocator::kSlab);
}

TEST(Tensor, ASelfMoveAndReassignmentKeepTheCountsRight) {
  Rig rig;
  Tensor a = rig.filled(kib(64), 1);
  Tensor b = rig.filled(kib(64), 2);
  Tensor& same = a;
  a = std::move(same);
  EXPECT_THAT(rig->read(a), Each(1));
  a = b;
  EXPECT_EQ(allocated(rig), kib(64));
  b = Tensor();
  EXPECT_THAT(rig->read(a), Each(2));
  a = Tensor();
  EXPECT_EQ(allocated(rig), Bytes{});
}

TEST(TensorPieces, OutsideTheTensorAreRefused) {
  Rig rig;
  const Tensor tensor = rig->empty({10});
  std::vector<float> piece(4);
  const auto refusal = [&](std::size_t first) {
    return message_of<UsageError>([&] { rig->write(tensor, first, piece); });
  };
  EXPECT_EQ(refusal(7), "write: 4 elements from element 7 on, of a tensor of 10");
  EXPECT_THAT(refusal(SIZE_MAX), HasSubstr("from element 18446744073709551615 on"));
  EXPECT_EQ(allocated(rig), Bytes{});
  rig->write(tensor, 6, piece);
  EXPECT_THROW(rig->read(tensor, 7, piece), UsageError);
  rig->read(tensor, 6, piece);
}

TEST(TensorPieces, OfNoElementsNeedNothing) {
  Rig rig;
  const Tensor tensor = rig->empty({10});
  rig->write(tensor, 10, {});
  rig->read(tensor, 10, std::span<float>());
  EXPECT_EQ(rig->operations(), 0U);
}

TEST(TensorPieces, ThatAreTheWholeTensorEndItsError) {
  Rig rig;
  const Tensor tensor = rig->empty({2, 5});
  const std::vector<float> all(10, 3);
  rig->submit("break", {.writes = {tensor}}, broken("lost"));
  rig->write(tensor.rows(1, 1), 0, std::span(all).first(5));  // all of a view is a part
  EXPECT_THAT(message_of<Error>([&] { rig->wait(tensor); }), HasSubstr("lost"));
  rig->write(tensor, 0, all);
  EXPECT_EQ(rig->read(tensor), all);
  settle(rig);
}

TEST(TensorPieces, ReadTakeHostMemoryForOnePiece) {
  Rig rig;
  const Tensor tensor = rig.filled(mib(8), 1);
  std::vector<float> piece(kib(64).count / sizeof(float));
  const auto& host = dynamic_cast<HostMemoryUpstream&>(rig.backend.host_upstream());
  for (std::size_t first = 0; first < tensor.shape().elements(); first += piece.size()) {
    rig->read(tensor, first, piece);
    EXPECT_EQ(piece.back(), 1);
  }
  EXPECT_GT(host.used(), Bytes{});
  EXPECT_LE(host.used(), mib(2));
}

TEST(MemoryInfo, AddsUpAtEveryMoment) {
  for (const PoolKind kind : kAllPoolKinds) {
    Rig rig({.budget = mib(1), .kind = kind});
    std::vector<Tensor> kept;
    for (int i = 0; i < 64; ++i) {
      const StreamRole role = kAllRoles.at(static_cast<std::size_t>(i) % kStreamRoles);
      Tensor tensor = rig.filled(kib(16), 1, role);
      expect_statistics_agree(rig);
      rig->submit("use", {.reads = {tensor}, .stream = StreamRole::kCompute2}, nothing());
      if (i % 8 == 0) kept.push_back(tensor);
      tensor = Tensor();
      expect_statistics_agree(rig);
    }
    expect_idle(rig);
    EXPECT_EQ(rig->memory_info().allocated, kib(16) * kept.size());
    EXPECT_EQ(rig->memory_info().requested, kib(16) * kept.size());
  }
}

// How schedulers begin and end: with handles that end on other threads meanwhile, and several on
// one pool in turn.

/// Ends the scheduler while the free of a tensor waits half-way at a gate.
void end_while_a_handle_ends(Bytes size) {
  const LogCapture log;
  Gate gate;
  std::atomic<std::thread::id> dropper;
  Rig rig;
  Tensor tensor = rig.filled(size, 1);
  // A small tensor's free records a point only for a second stream.
  rig->submit("use", {.reads = {tensor}, .stream = StreamRole::kCompute2}, nothing());
  rig->wait_all();
  rig.backend.before_record = [&] {
    auto me = std::this_thread::get_id();
    if (dropper.compare_exchange_strong(me, {})) gate.pass();
  };
  std::thread drops([&, own = std::move(tensor)]() mutable {
    dropper = std::this_thread::get_id();
    own = {};
  });
  gate.await_arrival();
  std::atomic<bool> ended = false;
  std::thread ends([&] {
    rig.end();
    ended = true;
  });
  give_others_a_chance();
  EXPECT_FALSE(ended) << "a free is still in the middle of it";
  gate.open();
  ends.join();
  drops.join();
  EXPECT_EQ(log.containing(""), std::vector<std::string>{});
  EXPECT_EQ(rig.pool.statistics().allocated.current, Bytes{});
}

TEST(SchedulerEnd, WaitsForAHandleThatEndsOnAnotherThread) {
  end_while_a_handle_ends(kib(64));
  end_while_a_handle_ends({4});
}

/// For the sanitizers: handles end before, during and after the end of their scheduler.
TEST(SchedulerEnd, HandlesThatEndOnOtherThreadsMeanwhileAreFreedOnce) {
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kEach = 40;
  const LogCapture log;
  for (int round = 0; round < 60; ++round) {
    Rig rig;
    std::vector<std::vector<Tensor>> handles(kThreads);
    for (std::vector<Tensor>& own : handles) {
      for (std::size_t i = 0; i < kEach; ++i) {
        own.push_back(rig.filled(i % 2 == 0 ? Bytes{4} : kib(4), 1, kAllRoles.at(i % 4)));
      }
    }
    std::latch start(kThreads + 1);
    std::vector<std::thread> threads;
    for (std::vector<Tensor>& own : handles) {
      threads.emplace_back([&start, &own] {
        start.arrive_and_wait();
        while (!own.empty()) own.pop_back();
      });
    }
    start.arrive_and_wait();
    for (int i = 0; i < round * 4; ++i) std::this_thread::yield();
    rig.end();
    EXPECT_EQ(rig.pool.statistics().allocated.current, Bytes{}) << "round " << round;
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(log.containing(""), std::vector<std::string>{});
}

TEST(SchedulerLimits, OfAPoolAreOneSchedulersAtATime) {
  Rig rig({.budget = mib(1), .policy = Policy::kUnbounded});
  EXPECT_THAT(message_of<UsageError>([&] { const Scheduler second(rig.device, rig.pool); }),
              HasSubstr("the pool already serves a scheduler"));
  EXPECT_EQ(rig.pool.budget(), mib(1));
  EXPECT_THROW((void)rig.filled(mib(2), 1), OutOfMemory) << "its limits are as they were";
  rig.end();
  Scheduler next(rig.device, rig.pool, {.budget = mib(2)});
  EXPECT_EQ(rig.pool.budget(), mib(2));
}

TEST(SchedulerLimits, ThatAreRefusedLeaveThePoolFree) {
  Rig rig;
  rig.end();
  EXPECT_THROW(Scheduler(rig.device, rig.pool, {.budget = gib(1)}), UsageError);
  EXPECT_NO_THROW(Scheduler(rig.device, rig.pool));
}

}  // namespace
}  // namespace weir
