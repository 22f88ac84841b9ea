// Queued device time, against sums over all work.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "support/random_seed.hpp"
#include "tools/timeline/model/counters.hpp"

namespace weir::timeline {
namespace {

using Steps = std::vector<QueuedTime::Step>;

/// Work, and the call that began it.
struct Piece {
  std::uint64_t id = 0;
  std::uint64_t submitted = 0;
  std::uint64_t from = 0, to = 0;
};

TimelineRecord call(std::uint64_t id, std::uint64_t begin, std::uint64_t end) {
  return {.begin = begin, .end = end, .id = id, .kind = TimelineKind::kCall};
}
TimelineRecord work(const Piece& piece, TimelineKind kind = TimelineKind::kKernel) {
  return {.begin = piece.from, .end = piece.to, .id = piece.id, .kind = kind};
}

/// The value in force at `time`.
std::uint64_t value_at(const Steps& steps, std::uint64_t time) {
  std::uint64_t value = 0;
  for (const auto& step : steps) {
    if (step.time <= time) value = step.value;
  }
  return value;
}

void expect_sums(const Steps& steps, const std::vector<Piece>& pieces) {
  EXPECT_TRUE(std::ranges::is_sorted(steps, {}, &QueuedTime::Step::time));
  const auto expect_at = [&](std::uint64_t time) {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces) {
      if (piece.submitted <= time && time < piece.to) sum += piece.to - piece.from;
    }
    EXPECT_EQ(value_at(steps, time), sum) << time;
  };
  for (const Piece& piece : pieces) {
    for (const std::uint64_t time : {piece.submitted, piece.from, piece.to}) expect_at(time);
  }
}

class QueuedTimeOf : public ::testing::Test {
 protected:
  void add(const TimelineRecord& record) { queued_.add(record, steps_); }
  const Steps& finish() {
    queued_.finish(steps_);
    return steps_;
  }

  QueuedTime queued_;
  Steps steps_;
};

TEST_F(QueuedTimeOf, KernelsCopiesAndSetsCountFromTheirCallToTheirEnd) {
  const std::vector<Piece> pieces{{1, 10, 20, 120}, {2, 30, 120, 220}, {3, 50, 220, 300}};
  add(call(1, 5, 10));
  add(work(pieces[0], TimelineKind::kCopy));
  add(call(2, 25, 30));
  add(call(3, 45, 50));
  add(work(pieces[1]));
  add(work(pieces[2], TimelineKind::kSet));
  expect_sums(finish(), pieces);
  EXPECT_EQ(value_at(steps_, 60), 280U);
}

TEST_F(QueuedTimeOf, EveryKernelOfAGraphCountsFromTheOneCall) {
  const std::vector<Piece> pieces{{7, 10, 20, 30}, {7, 10, 30, 50}, {7, 10, 40, 90}};
  add(call(7, 5, 10));
  for (const Piece& piece : pieces) add(work(piece));
  expect_sums(finish(), pieces);
}

TEST_F(QueuedTimeOf, WorkThatIsToldOfBeforeItsCallWaitsForIt) {
  const std::vector<Piece> pieces{{7, 10, 20, 30}, {7, 10, 30, 50}};
  for (const Piece& piece : pieces) add(work(piece));
  EXPECT_TRUE(steps_.empty());
  add(call(7, 5, 10));
  expect_sums(finish(), pieces);
}

TEST_F(QueuedTimeOf, WorkWithoutACallCountsFromItsBegin) {
  const std::vector<Piece> pieces{{7, 20, 20, 30}, {0, 25, 25, 50}};
  for (const Piece& piece : pieces) add(work(piece));
  expect_sums(finish(), pieces);
}

TEST_F(QueuedTimeOf, ACallOfAnEarlierWindowIsNotTakenForOneOfTheSameNumber) {
  add(call(7, 5, 10));
  add({.begin = 100, .end = 100, .kind = TimelineKind::kStart});
  const std::vector<Piece> pieces{{7, 120, 120, 150}};
  add(work(pieces[0]));
  expect_sums(finish(), pieces);
}

TEST_F(QueuedTimeOf, DeepQueuesAreAddedUpAlsoWhereTheWorkIsToldOfFirst) {
  constexpr std::uint64_t kMs = 1'000'000;
  std::vector<Piece> pieces;
  for (std::uint64_t id = 1; id <= 20; ++id) {
    pieces.push_back({id, id * kMs, (100 + 10 * id) * kMs, (110 + 10 * id) * kMs});
    add(work(pieces.back()));
    add(call(id, id * kMs - 10, id * kMs));
  }
  expect_sums(finish(), pieces);
}

TEST_F(QueuedTimeOf, ManyCallsThatBeginNothingDoNotHoldItBack) {
  std::uint64_t time = 0;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    add(call(2 * id, time, time + 10));
    add(call(2 * id + 1, time + 20, time + 30));
    add(work({.id = 2 * id + 1, .from = time + 40, .to = time + 90}));
    time += 100'000;
  }
  ASSERT_FALSE(steps_.empty());
  constexpr std::uint64_t kNear = 11'000'000;  // ns
  EXPECT_GT(steps_.back().time, time - kNear);
  EXPECT_EQ(steps_.back().value, 0U);
}

TEST_F(QueuedTimeOf, TwoStreamsAddUpToTheSumOverAllWorkInAnyOrderWithinAFlush) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  std::vector<Piece> pieces;
  std::vector<TimelineRecord> records;
  std::uint64_t host = 100;
  std::array<std::uint64_t, 2> done{};
  for (std::uint64_t id = 1; id <= 400; ++id) {
    const std::uint64_t begin = host;
    host += 1 + below(3000);
    records.push_back(call(id, begin, host));
    std::uint64_t& stream = done[below(2)];
    const std::uint64_t kernels = 1 + below(3);
    for (std::uint64_t kernel = 0; kernel < kernels; ++kernel) {
      const std::uint64_t from = std::max(stream, host) + below(100);
      stream = from + below(2500);
      pieces.push_back({id, host, from, stream});
      records.push_back(work(pieces.back()));
    }
  }
  std::ranges::stable_sort(records, {}, &TimelineRecord::begin);
  constexpr std::size_t kFlush = 64;
  for (std::size_t i = 0; i + kFlush <= records.size(); i += kFlush) {
    std::shuffle(records.begin() + static_cast<std::ptrdiff_t>(i),
                 records.begin() + static_cast<std::ptrdiff_t>(i + kFlush), random);
  }
  for (const TimelineRecord& record : records) add(record);
  expect_sums(finish(), pieces);
}

TimelineRecord operation(std::uint64_t id, TimelineKind kind, std::uint64_t begin,
                         std::uint64_t end) {
  return {.begin = begin, .end = end, .id = id, .kind = kind};
}

TEST_F(QueuedTimeOf, OperationsCountFromTheirSubmissionToTheirEnd) {
  add(operation(3, TimelineKind::kExecute, 20, 70));
  add(operation(3, TimelineKind::kSubmit, 5, 10));
  expect_sums(finish(), {{3, 10, 20, 70}});
}

// The recorder reads the worker's records after the frontend's: it may read an execution a round
// before its submission.
TEST_F(QueuedTimeOf,
       AnOperationCountsFromItsSubmissionAlsoWhereItIsReadALongTimeAfterTheExecution) {
  constexpr std::uint64_t kMs = 1'000'000;
  const std::vector<Piece> pieces{{1, 1 * kMs, 2 * kMs, 40 * kMs},
                                  {2, 3 * kMs, 40 * kMs, 48 * kMs},
                                  {3, 4 * kMs, 49 * kMs, 90 * kMs}};
  const auto submit = [&](const Piece& piece) {
    add(operation(piece.id, TimelineKind::kSubmit, piece.submitted - 5, piece.submitted));
  };
  const auto execute = [&](const Piece& piece) {
    add(operation(piece.id, TimelineKind::kExecute, piece.from, piece.to));
  };
  submit(pieces[0]);
  submit(pieces[1]);
  execute(pieces[2]);
  execute(pieces[0]);
  execute(pieces[1]);
  submit(pieces[2]);
  expect_sums(finish(), pieces);
}

}  // namespace
}  // namespace weir::timeline
