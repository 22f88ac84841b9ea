#include "trainer/data/reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>

#include "support/gate.hpp"
#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

constexpr StreamId kCopyStream{1};
constexpr BatchShape kShape{.rows = 4, .inputs = 3, .targets = 2, .rows_in_all = 0};

/// Writes its number into each batch, and lets a test wait for the n-th request.
class NumberedSource {
 public:
  [[nodiscard]] BatchSource source() {
    return [this](std::uint64_t index, std::span<float> inputs, std::span<float> targets) {
      std::ranges::fill(inputs, static_cast<float>(index));
      std::ranges::fill(targets, -static_cast<float>(index));
      const std::lock_guard lock(mutex_);
      made_ = index + 1;
      changed_.notify_all();
    };
  }
  void await_made(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_ >= count; });
  }
  [[nodiscard]] std::uint64_t made() {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t made_ = 0;
};

class ReaderTest : public ::testing::Test {
 protected:
  MappedUpstream upstream{mib(16)};
  ManualProgress progress;
  NumberedSource numbers;
};

void expect_number(const HostBatch& batch, float number) {
  EXPECT_EQ(batch.rows, kShape.rows);
  ASSERT_EQ(batch.inputs.size(), 12U);
  ASSERT_EQ(batch.targets.size(), 8U);
  EXPECT_EQ(std::ranges::count(batch.inputs, number), 12);
  EXPECT_EQ(std::ranges::count(batch.targets, -number), 8);
}

TEST_F(ReaderTest, HandsOutBatchesInOrder) {
  Reader reader({upstream, progress}, kShape, numbers.source(), 0);
  for (int i = 0; i < 20; ++i) {
    const HostBatch batch = reader.next();
    expect_number(batch, static_cast<float>(i));
    reader.give_back(batch, progress.enqueue(kCopyStream));
    progress.pass_all(kCopyStream);
  }
}

TEST_F(ReaderTest, PrefetchesAtMostItsLimit) {
  {
    Reader reader({upstream, progress}, kShape, numbers.source(), 0);
    numbers.await_made(Reader::kPrefetch);
    for (std::uint64_t taken = 1; taken <= 5; ++taken) {
      (void)reader.next();
      numbers.await_made(taken + Reader::kPrefetch);
      EXPECT_LE(numbers.made(), taken + Reader::kPrefetch);
    }
  }
  EXPECT_EQ(numbers.made(), 5 + Reader::kPrefetch) << "it ended without making one more";
}

TEST_F(ReaderTest, NeverWritesIntoABatchWhoseCopyIsNotPassed) {
  Reader reader({upstream, progress}, kShape, numbers.source(), 0);
  const HostBatch first = reader.next();
  reader.give_back(first, progress.enqueue(kCopyStream));
  std::vector<const void*> seen{first.buffer.pointer};
  for (int i = 1; i < 6; ++i) {
    const HostBatch batch = reader.next();
    EXPECT_EQ(std::ranges::count(seen, batch.buffer.pointer), 0);
    seen.push_back(batch.buffer.pointer);
    reader.give_back(batch, progress.enqueue(kCopyStream));
  }
  expect_number(first, 0);
}

TEST_F(ReaderTest, StagingStaysConstantHoweverMuchFasterThanTheDeviceTheReaderIs) {
  // Buffers of 1 MiB, and a device that is always three copies behind.
  constexpr BatchShape kLarge{.rows = 1024, .inputs = 255, .targets = 1, .rows_in_all = 0};
  constexpr std::uint64_t kBehind = 3;
  Reader reader({upstream, progress}, kLarge, numbers.source(), 0);
  std::deque<Point> copies;
  std::uint64_t taken = 0;
  const auto take = [&] {
    const HostBatch batch = reader.next();
    // The next ones are ready before the device takes a step.
    numbers.await_made(++taken + Reader::kPrefetch);
    copies.push_back(progress.enqueue(kCopyStream));
    reader.give_back(batch, copies.back());
    if (copies.size() <= kBehind) return;
    progress.pass(copies.front());
    copies.pop_front();
  };
  for (int i = 0; i < 20; ++i) take();
  const Bytes warm = reader.staging_memory();
  const std::uint64_t calls = reader.staging_upstream_calls();
  EXPECT_LE(warm, mib(1) * (kBehind + 1 + Reader::kPrefetch)) << "behind, at hand, and ready";
  for (int i = 0; i < 500; ++i) take();
  EXPECT_EQ(reader.staging_memory(), warm);
  EXPECT_EQ(reader.staging_upstream_calls(), calls) << "after warm-up none reaches the upstream";
  EXPECT_EQ(upstream.used(), warm);
  EXPECT_LE(numbers.made(), taken + Reader::kPrefetch) << "it waits for the frontend";
}

TEST_F(ReaderTest, WhatTheSourceThrowsSurfacesAfterTheBatchesBeforeItAndEachTime) {
  const BatchSource source = [](std::uint64_t index, std::span<float> inputs, std::span<float>) {
    if (index == 3) throw std::runtime_error("the file ends here");
    inputs[0] = static_cast<float>(index);
  };
  Reader reader({upstream, progress}, kShape, source, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reader.next().inputs[0], static_cast<float>(i));
  EXPECT_THROW((void)reader.next(), std::runtime_error);
  EXPECT_THROW((void)reader.next(), std::runtime_error);
}

TEST_F(ReaderTest, WhatTheSourceThrowsWakesWhoWaitsForABatch) {
  Gate making;
  const BatchSource source = [&](std::uint64_t, std::span<float>, std::span<float>) {
    making.pass();
    throw std::runtime_error("the file ends here");
  };
  Reader reader({upstream, progress}, kShape, source, 0);
  Gate asked;
  asked.open();
  auto waiting = std::async(std::launch::async, [&] {
    asked.pass();
    (void)reader.next();
  });
  making.await_arrival();
  asked.await_arrival();
  give_others_a_chance();  // so that it falls asleep; if it is not woken, it sleeps until the
                           // test's limit
  making.open();
  EXPECT_THROW(waiting.get(), std::runtime_error);
}

TEST_F(ReaderTest, WhatTheSourceThrowsBeforehandSurfacesAtOnce) {
  const BatchSource source = [](std::uint64_t, std::span<float>, std::span<float>) {
    throw std::runtime_error("no data");
  };
  EXPECT_THROW(Reader({upstream, progress}, kShape, source, 1), std::runtime_error);
}

TEST_F(ReaderTest, BatchesMadeBeforehandComeInTurnAndAreNeverGivenBack) {
  Reader reader({upstream, progress}, kShape, numbers.source(), 3);
  EXPECT_EQ(numbers.made(), 3U);
  std::vector<const float*> first_turn;
  for (int i = 0; i < 9; ++i) {
    const HostBatch batch = reader.next();
    expect_number(batch, static_cast<float>(i % 3));
    EXPECT_EQ(batch.buffer.pointer, nullptr);
    // Returned behind a passed point, it must not be taken for a free buffer.
    reader.give_back(batch, progress.enqueue(kCopyStream));
    progress.pass_all(kCopyStream);
    if (i < 3) first_turn.push_back(batch.inputs.data());
    EXPECT_EQ(batch.inputs.data(), first_turn[static_cast<std::size_t>(i % 3)]);
  }
  EXPECT_EQ(numbers.made(), 3U);
  EXPECT_EQ(reader.staging_memory(), Bytes{3 * 4 * (3 + 2) * sizeof(float)});
}

TEST_F(ReaderTest, TheLastBatchBeforeTheStartHoldsWhatIsLeft) {
  constexpr BatchShape kSevenRows{.rows = 4, .inputs = 3, .targets = 2, .rows_in_all = 7};
  const BatchSource source = [](std::uint64_t, std::span<float> inputs, std::span<float> targets) {
    std::ranges::fill(inputs, 1.0F);
    std::ranges::fill(targets, 2.0F);
  };
  Reader reader({upstream, progress}, kSevenRows, source, 0);
  for (const std::size_t rows : {4U, 3U, 4U, 3U}) {
    const HostBatch batch = reader.next();
    EXPECT_EQ(batch.rows, rows);
    EXPECT_EQ(batch.inputs.size(), 3 * rows);
    EXPECT_EQ(batch.targets.size(), 2 * rows);
    EXPECT_EQ(std::ranges::count(batch.inputs, 1.0F), std::ssize(batch.inputs));
    EXPECT_EQ(std::ranges::count(batch.targets, 2.0F), std::ssize(batch.targets));
  }
}

TEST(BatchShape, RowsOfABatchFollowFromItsNumber) {
  constexpr BatchShape kEven{.rows = 4, .inputs = 1, .targets = 1, .rows_in_all = 8};
  constexpr BatchShape kSmall{.rows = 4, .inputs = 1, .targets = 1, .rows_in_all = 3};
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(kShape.rows_of(i), 4U) << "without an end";
    EXPECT_EQ(kEven.rows_of(i), 4U);
    EXPECT_EQ(kSmall.rows_of(i), 3U);
  }
}

TEST(GeneratedSource, TheSameIndexGivesTheSameBatch) {
  std::vector<float> inputs(64);
  std::vector<float> again(64);
  std::vector<float> targets(8);
  generated_source(5)(17, inputs, targets);
  generated_source(5)(17, again, targets);
  EXPECT_EQ(inputs, again);
  EXPECT_EQ(targets, std::vector<float>(8, 1.0F));
  generated_source(5)(18, again, targets);
  EXPECT_NE(inputs, again) << "another index";
  generated_source(6)(17, again, targets);
  EXPECT_NE(inputs, again) << "another seed";
}

}  // namespace
}  // namespace weir::testing
