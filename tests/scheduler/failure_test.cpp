// Makes every step fail once, at each of its calls. Afterwards nothing may be charged, the
// accounting must be consistent, and the same program must give the right result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>

#include "program.hpp"
#include "rig.hpp"
#include "support/log_capture.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;

const Program& program() {
  static const Program kProgram(3);
  return kProgram;
}

/// Checks what must hold after any failure, with `rig` in its current state.
void expect_recovered(Rig& rig) {
  rig.backend.upstream().refuse_calls(Fault::never());
  rig.backend.upstream().throw_calls(Fault::never());
  for (const DeviceCall call : kDeviceCalls) rig.backend.fail(call, Fault::never());
  settle(rig);  // a point that could not be recorded is recorded now,
  settle(rig);  // and a block that was used on a second stream has one more
  expect_idle(rig);
  EXPECT_EQ(program().run(rig.scheduler()), program().expected());
  expect_idle(rig);
  EXPECT_EQ(rig->memory_info().allocated.count % SlabAllocator::kSlab.count, 0U)
      << "nothing but slabs of small tensors is left";
}

/// Runs the program and ignores failures. Returns true if there were none.
bool run(Rig& rig) {
  try {
    EXPECT_EQ(program().run(rig.scheduler()), program().expected())
        << "a fault changed the result without being reported";
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// A step that can fail, and how to make its n-th call do so.
struct Failing {
  const char* name;
  void (*arm)(Rig& rig, std::uint64_t n);
  bool at_once = false;
  friend std::ostream& operator<<(std::ostream& out, const Failing& step) {
    return out << step.name;
  }
};

template <DeviceCall Call, std::uint64_t Times = 1>
void fail_device(Rig& rig, std::uint64_t n) {
  rig.backend.fail(Call, Fault::at(n, Times));
}

constexpr std::array kFailingSteps{
    Failing{"TheUpstreamThatHasNoRoom",
            [](Rig& rig, std::uint64_t n) { rig.backend.upstream().refuse_calls(Fault::at(n)); }},
    Failing{"TheUpstreamThatThrows",
            [](Rig& rig, std::uint64_t n) { rig.backend.upstream().throw_calls(Fault::at(n)); }},
    Failing{"APointThatCannotBeRecorded", fail_device<DeviceCall::kRecord>},
    Failing{"PointsThatCannotBeRecordedForAWhile", fail_device<DeviceCall::kRecord, 7>},
    Failing{"AnOperationThatCannotBeEnqueued", fail_device<DeviceCall::kEnqueue>},
    Failing{"AnOperationThatCannotBeEnqueuedWhereItsClosureRunsAtOnce",
            fail_device<DeviceCall::kEnqueue>, true},
    Failing{"AStreamThatCannotBeMadeToWait", fail_device<DeviceCall::kMakeWait>},
};

using KindAndStep = std::tuple<PoolKind, Failing>;

class EveryFailure : public ::testing::TestWithParam<KindAndStep> {
 protected:
  LogCapture log;  // faults without a caller to report to are logged
};

// For every n until no call fails.
TEST_P(EveryFailure, LeavesTheProgramAbleToRun) {
  constexpr std::uint64_t kMost = 2000;
  const auto& [kind, step] = GetParam();
  for (std::uint64_t n = 1; n <= kMost; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    Rig rig({.budget = Program::kLeastBudget, .kind = kind, .at_once = step.at_once});
    step.arm(rig, n);
    (void)run(rig);
    const bool struck = rig.backend.upstream().struck() + rig.backend.struck() != 0;
    expect_recovered(rig);
    if (HasFailure() || !struck) return;
  }
  ADD_FAILURE() << "the calls do not end";
}

INSTANTIATE_TEST_SUITE_P(Of, EveryFailure,
                         ::testing::Combine(::testing::ValuesIn(kAllPoolKinds),
                                            ::testing::ValuesIn(kFailingSteps)),
                         [](const auto& each) {
                           return std::string(to_string(std::get<PoolKind>(each.param))) + "_" +
                                  std::get<Failing>(each.param).name;
                         });

class Failure : public ::testing::Test {
 protected:
  LogCapture log;
};

TEST_F(Failure, OfRecordingMakesNoWaitForTheDeviceReturnEarly) {
  Rig rig;
  Gate& gate = rig.gate();
  rig->submit("late", {}, pass(gate));
  gate.await_arrival();
  std::atomic<bool> returned = false;
  rig.backend.fail(DeviceCall::kRecord, Fault::always());
  std::jthread waiter([&] {
    rig->wait_all();
    returned = true;
  });
  rig.backend.await_waits(1);
  EXPECT_FALSE(returned) << "the operation is still running";
  gate.open();
  waiter.join();
  rig.backend.fail(DeviceCall::kRecord, Fault::never());
}

TEST_F(Failure, OfRecordingDoesNotEndASchedulerWhoseWorkStillRuns) {
  Rig rig;
  std::atomic<bool> finished = false;
  Gate& gate = rig.gate();
  rig->submit("late", {}, [&](Stream&, Inputs, Outputs) {
    gate.pass();
    finished = true;
  });
  rig.backend.fail(DeviceCall::kRecord, Fault::always());
  rig.end();
  EXPECT_TRUE(finished);
}

TEST_F(Failure, OfRecordingLosesNoMemoryThatAReadCopiesTo) {
  Rig rig;
  const Tensor tensor = rig.filled(kib(64), 4);
  rig.backend.fail(DeviceCall::kRecord, Fault::always());
  EXPECT_THAT(rig->read(tensor), Each(4)) << "a read needs no new point";
  rig.backend.fail(DeviceCall::kRecord, Fault::never());
}

TEST_F(Failure, OfTheHostInsideABatchGivesBackAllThatItTook) {
  for (int at = 0; at < 4; ++at) {
    Rig rig({.budget = mib(1)});
    try {
      const Batch batch = rig->begin_batch("step");
      const Tensor x = rig.filled(kib(64), 1, StreamRole::kCopyIn);
      if (at == 0) throw Broken("after the copy");
      const Tensor y = rig->empty(shape_of(kib(64)));
      if (at == 1) throw Broken("before the first operation");
      rig->submit("good", {.reads = {x}, .writes = {y}}, add(1));
      if (at == 2) throw Broken("after it");
      const Batch inner = rig->begin_batch("inner");
      throw Broken("in a batch that joined");
    } catch (const Broken&) {
      EXPECT_EQ(rig->admission().open, 0U);
    }
    expect_recovered(rig);
  }
}

TEST_F(Failure, OfAllocationInsideABatchLeavesTheBatchUsable) {
  Rig rig({.budget = mib(1)});
  {
    const Batch batch = rig->begin_batch("step");
    EXPECT_THROW((void)rig.filled(mib(2), 1), OutOfMemory);
    EXPECT_THAT(rig->read(rig.filled(kib(64), 2)), Each(2));
  }
  expect_recovered(rig);
}

TEST_F(Failure, OfOneOfSeveralOutputsGivesBackTheOthers) {
  Rig rig({.budget = mib(1)});
  const Tensor a = rig->empty(shape_of(kib(256)));
  const Tensor b = rig->empty(shape_of(kib(64)));
  const Tensor c = rig->empty(shape_of(mib(1)));
  const Bytes before = rig->memory_info().requested;
  EXPECT_THROW(rig->submit("op", {.writes = {a, b, c}}, nothing()), OutOfMemory);
  EXPECT_EQ(rig->memory_info().requested, before);
  EXPECT_THROW((void)rig->read(a), UsageError) << "it was not written";
  rig->submit("op", {.writes = {a, b}}, fill(1));
  EXPECT_THAT(rig->read(a), Each(1));
}

}  // namespace
}  // namespace weir
