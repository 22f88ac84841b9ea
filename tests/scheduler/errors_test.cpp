// The effects of an operation that throws, on itself and its dependents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "rig.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(Errors, NameTheOperationItsBatchAndWhereItWasSubmitted) {
  Rig rig;
  const Tensor out = rig->empty({4});
  int line = 0;
  {
    const Batch batch = rig->begin_batch("train");
    line = __LINE__ + 1;
    rig->submit("softmax", {.writes = {out}}, broken("no such luck"));
  }
  EXPECT_THAT(
      message_of<OperationError>([&] { rig->wait(out); }),
      AllOf(HasSubstr("'softmax'"), HasSubstr("batch 1"), HasSubstr("'train'"),
            HasSubstr("errors_test.cpp:" + std::to_string(line)), HasSubstr("no such luck")));
}

TEST(Errors, KeepTheirCause) {
  Rig rig;
  const Tensor out = rig->empty({4});
  rig->submit("op", {.writes = {out}}, broken("why"));
  try {
    rig->wait(out);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const OperationError& error) {
    EXPECT_THROW(std::rethrow_exception(error.cause()), Broken);
  }
  rig->submit("op", {.writes = {out}}, [](Stream&, Inputs, Outputs) { throw 7; });  // NOLINT
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait(out); }),
              HasSubstr("not a std::exception"));
}

TEST(Errors, AreRethrownEachTimeForEachOutput) {
  Rig rig;
  const Tensor a = rig->empty({4});
  const Tensor b = rig->empty({4});
  rig->submit("op", {.writes = {a, b}}, broken("both"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(rig->wait(a), OperationError);
    EXPECT_THROW((void)rig->read(a), OperationError);
    EXPECT_THROW(rig->wait(b), OperationError) << "reading one must not clear it for its sibling";
    EXPECT_THROW((void)rig->read(b), OperationError);
  }
}

TEST(Errors, WhatDependsOnThemIsSkippedAndMarkedAndTheRestGoesOn) {
  Rig rig;
  std::atomic<int> ran = 0;
  const auto counted = [&](Stream&, Inputs, Outputs out) {
    ++ran;
    std::ranges::fill(out[0], 1.0F);
  };
  const Tensor bad = rig->empty({4});
  const Tensor child = rig->empty({4});
  const Tensor grandchild = rig->empty({4});
  const Tensor sibling = rig->empty({4});
  rig->submit("first", {.writes = {bad}}, broken("the first"));
  rig->submit("child", {.reads = {bad}, .writes = {child}, .stream = StreamRole::kCompute2},
              counted);
  rig->submit("grandchild", {.reads = {child}, .writes = {grandchild}}, counted);
  rig->submit("sibling", {.writes = {sibling}, .stream = StreamRole::kCompute2}, counted);
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait(grandchild); }),
              AllOf(HasSubstr("'first'"), HasSubstr("the first")))
      << "the original error, not one of its consequences";
  EXPECT_THROW(rig->wait(child), OperationError);
  EXPECT_THAT(rig->read(sibling), Each(1));
  EXPECT_EQ(ran, 1);
}

TEST(Errors, OverwritingCures) {
  Rig rig;
  const Tensor tensor = rig->empty(shape_of(kib(4)));
  rig->submit("bad", {.writes = {tensor}}, broken("once"));
  EXPECT_THROW(rig->wait(tensor), OperationError);
  rig->submit("good", {.writes = {tensor}, .stream = StreamRole::kCompute2}, fill(3));
  rig->wait(tensor);
  EXPECT_THAT(rig->read(tensor), Each(3));
}

TEST(Errors, AnUpdateInPlaceDoesNotCure) {
  Rig rig;
  const Tensor tensor = rig.filled(kib(4), 1);
  rig->submit("bad", {.reads = {tensor}, .writes = {tensor}}, broken("once"));
  rig->submit("add", {.reads = {tensor}, .writes = {tensor}}, add(1));
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait(tensor); }), HasSubstr("'bad'"));
}

TEST(Errors, AReaderOfTheOldContentsIsNotTouched) {
  Rig rig;
  Gate& gate = rig.gate();
  const Tensor tensor = rig.filled(kib(4), 1);
  const Tensor copy = rig->empty(shape_of(kib(4)));
  rig->submit("copy", {.reads = {tensor}, .writes = {copy}, .stream = StreamRole::kCompute2},
              [&](Stream& stream, Inputs in, Outputs out) {
                gate.pass();
                add(0)(stream, in, out);
              });
  rig->submit("bad", {.writes = {tensor}}, broken("later"));
  gate.open();
  EXPECT_THAT(rig->read(copy), Each(1));
  EXPECT_THROW(rig->wait(tensor), OperationError);
}

TEST(Errors, WaitAllThrowsTheFirstOnceAndThenTheSchedulerIsUsable) {
  Rig rig;
  const Tensor a = rig->empty({4});
  const Tensor b = rig->empty({4});
  rig->submit("one", {.writes = {a}}, broken("first"));
  rig->submit("two", {.writes = {b}}, broken("second"));
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait_all(); }), HasSubstr("'one'"));
  rig->wait_all();
  EXPECT_THROW(rig->wait(b), OperationError) << "the tensors still say so";
  const Tensor fine = rig.filled(kib(4), 2);
  rig->wait_all();
  EXPECT_THAT(rig->read(fine), Each(2));
}

TEST(Errors, OfAnOperationWithoutOutputsReachWaitAll) {
  Rig rig;
  rig->submit("check", {}, broken("nobody to mark"));
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait_all(); }), HasSubstr("nobody to mark"));
}

TEST(Errors, DoNotOutliveTheTensorInARecycledOne) {
  Rig rig;
  for (int i = 0; i < 10; ++i) {
    Tensor tensor = rig->empty({4});
    rig->submit("bad", {.writes = {tensor}}, broken("gone with it"));
    tensor = Tensor();
    settle(rig);
    const Tensor next = rig->empty({4});
    rig->submit("fill", {.writes = {next}}, fill(1));
    EXPECT_THAT(rig->read(next), Each(1));
  }
}

TEST(Errors, LongNamesAreCutAndDoNoHarm) {
  Rig rig;
  const std::string name(500, 'n');
  const Tensor out = rig->empty({4}, name);
  rig->submit(name, {.writes = {out}}, broken("long"));
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait(out); }), HasSubstr("nnnn"));
}

}  // namespace
}  // namespace weir
