#include "trainer/sparse/sparse_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "allocator/base/error.hpp"
#include "support/gate.hpp"
#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

constexpr StreamId kPackedStream{1};

/// One row, whose only label is the batch's number; and as many entries as `size_of` says.
template <typename SizeOf>
SparseSource sized_source(SizeOf size_of) {
  return [size_of](std::uint64_t index, SparseRows& rows) {
    rows.columns = 1U << 20U;
    rows.classes = kMostSparse;
    rows.labels.push_back(static_cast<std::uint32_t>(index));
    const std::uint32_t size = size_of(index);
    for (std::uint32_t i = 0; i < size; ++i) {
      rows.indices.push_back(i);
      rows.values.push_back(static_cast<float>(index));
    }
    rows.end_row();
  };
}
SparseSource numbered_source() {
  return sized_source([](std::uint64_t index) { return static_cast<std::uint32_t>(index % 7); });
}

std::uint64_t number_of(const PackedBatch& batch) {
  const SparseBatch views = unpack(batch.words, batch.sizes, {});
  EXPECT_EQ(views.labels.indices.size(), 1U);
  EXPECT_EQ(std::ranges::count(views.rows.values, static_cast<float>(batch.index)),
            std::ssize(views.rows.values));
  EXPECT_EQ(views.labels.indices[0], batch.index);
  return batch.index;
}

/// A frontend whose device is at once done with each batch.
std::vector<float> taken(SparseReader& reader, ManualProgress& progress) {
  const PackedBatch batch = reader.next();
  std::vector<float> words(batch.words.begin(), batch.words.end());
  reader.give_back(batch, progress.enqueue(kPackedStream));
  progress.pass_all(kPackedStream);
  return words;
}

class SparseReaderTest : public ::testing::Test {
 protected:
  MappedUpstream upstream{mib(64)};
  ManualProgress progress;
};

TEST(SparseReader, BatchesAndTheirOrderDoNotDependOnTheThreads) {
  const SparseDraw draw({.columns = 500, .classes = 20, .nnz = 30}, 6);
  const SparseSource source = generated_rows(draw, 8);
  BatchPacker packer;
  for (const SparseReaderOptions& options :
       {SparseReaderOptions{.threads = 1, .ahead = 1},
        SparseReaderOptions{.threads = 8, .ahead = 3},
        SparseReaderOptions{.threads = 8, .ahead = 16, .first = 40}}) {
    MappedUpstream upstream(mib(64));
    ManualProgress progress;
    SparseReader reader({upstream, progress}, source, options);
    for (std::uint64_t i = options.first; i < options.first + 60; ++i) {
      SparseRows rows;
      source(i, rows);
      const PackedSizes sizes = packer.prepare(rows);
      std::vector<float> expected(packed_words(sizes));
      packer.write(rows, expected);
      const std::vector<float> words = taken(reader, progress);
      ASSERT_EQ(words.size(), expected.size());
      EXPECT_EQ(std::memcmp(words.data(), expected.data(), words.size() * sizeof(float)), 0);
    }
  }
}

TEST_F(SparseReaderTest, TakesNoLessThanItsTimeForABatchAndPacksItMeanwhile) {
  constexpr std::chrono::milliseconds kLeast(5);
  const SparseSource source =
      generated_rows(SparseDraw({.columns = 50, .classes = 9, .nnz = 5}, 6), 8);
  const auto begin = std::chrono::steady_clock::now();
  SparseReader slow({upstream, progress}, source, {.threads = 1, .ahead = 1, .least = kLeast});
  MappedUpstream others_upstream(mib(64));
  SparseReader other({others_upstream, progress}, source, {});
  EXPECT_EQ(taken(slow, progress), taken(other, progress));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kLeast);
}

TEST_F(SparseReaderTest, AStopEndsTheTimeThatABatchTakes) {
  std::stop_source stop;
  SparseReader reader(
      {upstream, progress},
      generated_rows(SparseDraw({.columns = 50, .classes = 9, .nnz = 5}, 6), 8),
      {.threads = 1, .ahead = 1, .least = std::chrono::hours(1), .stop = stop.get_token()});
  stop.request_stop();
  EXPECT_FALSE(taken(reader, progress).empty());
}

TEST_F(SparseReaderTest, AnEarlyBatchThatIsMadeLastStillComesFirst) {
  std::promise<void> others_made;
  std::atomic<int> made = 0;
  const SparseSource source = [&](std::uint64_t index, SparseRows& rows) {
    if (index == 0) others_made.get_future().wait();
    numbered_source()(index, rows);
    if (index > 0 && ++made == 3) others_made.set_value();
  };
  SparseReader reader({upstream, progress}, source, {.threads = 4, .ahead = 4});
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(number_of(reader.next()), i);
}

TEST_F(SparseReaderTest, MakesAtMostItsNumberAhead) {
  std::atomic<std::uint64_t> begun = 0;
  const SparseSource source = [&](std::uint64_t index, SparseRows& rows) {
    ++begun;
    numbered_source()(index, rows);
  };
  {
    SparseReader reader({upstream, progress}, source, {.threads = 4, .ahead = 3});
    for (std::uint64_t i = 0; i < 20; ++i) {
      while (begun < i + 3) std::this_thread::yield();
      give_others_a_chance();
      EXPECT_EQ(begun, i + 3);
      (void)reader.next();
    }
  }
  EXPECT_LE(begun, 23U) << "it ended without making more";
}

TEST(SparseReader, MemoryForOneBatchIsEnoughForAnyNumberAhead) {
  // Later batches must not take the memory of the one that the frontend waits for.
  ManualProgress progress;
  MappedUpstream upstream(
      Bytes{staging_room(packed_words({.rows = 1, .entries = 6, .touched = 6, .labels = 1}), 0) *
            sizeof(float)});
  for (const std::size_t threads : {1U, 6U}) {
    SparseReader reader({upstream, progress}, numbered_source(), {.threads = threads, .ahead = 6});
    for (std::uint64_t i = 0; i < 200; ++i) {
      const PackedBatch batch = reader.next();
      EXPECT_EQ(number_of(batch), i);
      reader.give_back(batch, progress.enqueue(kPackedStream));
    }
    EXPECT_LE(reader.staging_memory(), upstream.capacity());
  }
}

TEST(SparseReader, ABatchThatTheFrontendStillHoldsIsWaitedFor) {
  ManualProgress progress;
  MappedUpstream upstream(kib(1));
  SparseReader reader({upstream, progress}, numbered_source(), {.threads = 2, .ahead = 2});
  const PackedBatch held = reader.next();
  // Of these the first batch had one, a buffer ahead was refused, and then the second batch.
  while (reader.staging_upstream_calls() < 3) std::this_thread::yield();
  give_others_a_chance();
  EXPECT_EQ(number_of(held), 0U);
  reader.give_back(held, progress.enqueue(kPackedStream));
  EXPECT_EQ(number_of(reader.next()), 1U);
}

TEST(SparseReader, IsOutOfMemoryWhereTheFrontendHasTheMemoryAndWaits) {
  for (const std::size_t threads : {1U, 4U}) {
    ManualProgress progress;
    MappedUpstream upstream(kib(1));
    SparseReader reader({upstream, progress}, numbered_source(), {.threads = threads, .ahead = 4});
    EXPECT_EQ(number_of(reader.next()), 0U);
    EXPECT_THROW((void)reader.next(), OutOfMemory);
    EXPECT_THROW((void)reader.next(), OutOfMemory) << "each time";
  }
}

TEST_F(SparseReaderTest, NeverWritesIntoABatchWhoseCopyIsNotPassed) {
  SparseReader reader({upstream, progress}, numbered_source(), {.threads = 3, .ahead = 3});
  std::vector<PackedBatch> batches;
  std::set<const void*> buffers;
  for (std::uint64_t i = 0; i < 20; ++i) {
    batches.push_back(reader.next());
    buffers.insert(batches.back().buffer.pointer);
    reader.give_back(batches.back(), progress.enqueue(kPackedStream));
  }
  EXPECT_EQ(buffers.size(), batches.size());
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(number_of(batches[i]), i);
}

TEST_F(SparseReaderTest, StagingIsConstantAlthoughBatchesVary) {
  constexpr std::uint64_t kBatches = 500;
  constexpr std::size_t kBehind = 3;
  constexpr std::size_t kAhead = 2;
  const SparseSource source =
      generated_rows(SparseDraw({.columns = 300, .classes = 20, .nnz = 8}, 2), 128);
  SparseReader reader({upstream, progress}, source, {.threads = 4, .ahead = kAhead});
  std::deque<Point> copies;
  std::set<std::size_t> sizes;
  std::size_t room = 0;
  std::size_t growths = 0;
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    const PackedBatch batch = reader.next();
    sizes.insert(batch.words.size());
    growths += batch.words.size() > room ? 1U : 0U;
    room = staging_room(batch.words.size(), room);
    copies.push_back(progress.enqueue(kPackedStream));
    reader.give_back(batch, copies.back());
    if (copies.size() <= kBehind) continue;
    progress.pass(copies.front());
    copies.pop_front();
  }
  EXPECT_GT(sizes.size(), 50U) << "they do vary";
  EXPECT_LE(growths, 2U);
  // As many buffers as can be in use at once, whatever the number of batches: behind, at hand and
  // ahead. Those that became too small went back.
  constexpr std::size_t kInUse = kBehind + 1 + kAhead;
  EXPECT_LE(reader.staging_upstream_calls(), kInUse * growths);
  EXPECT_LE(reader.staging_memory(), Bytes{kInUse * room * sizeof(float)});
  EXPECT_GE(upstream.used(), Bytes{room * sizeof(float)});
}

TEST_F(SparseReaderTest, ObtainsAllItsMemoryWithTheFirstBatch) {
  constexpr std::size_t kAhead = 3;
  SparseReader reader({upstream, progress}, numbered_source(), {.threads = 2, .ahead = kAhead});
  Point copied{};
  for (std::uint64_t i = 0; i < 200; ++i) {
    const PackedBatch batch = reader.next();
    EXPECT_EQ(reader.staging_upstream_calls(), kAhead + 2) << "ahead, at hand and being copied";
    if (i > 0) progress.pass(copied);
    copied = progress.enqueue(kPackedStream);
    reader.give_back(batch, copied);
  }
  EXPECT_EQ(reader.staging_obtained(), kib(1) * (kAhead + 2));
  EXPECT_EQ(reader.staging_obtained(), reader.staging_memory());
}

TEST_F(SparseReaderTest, BuffersThatBecameTooSmallGoBackToTheUpstream) {
  const SparseSource source =
      sized_source([](std::uint64_t index) { return index < 20 ? 1000U : 5000U; });
  SparseReader reader({upstream, progress}, source, {.threads = 1, .ahead = 2});
  for (int i = 0; i < 60; ++i) (void)taken(reader, progress);
  const std::size_t large =
      packed_words({.rows = 1, .entries = 5000, .touched = 5000, .labels = 1});
  const Bytes buffer{staging_room(large, 0) * sizeof(float)};
  EXPECT_EQ(upstream.used().count % buffer.count, 0U) << "buffers of the larger size alone";
  EXPECT_LE(upstream.used(), buffer * 4);
}

TEST(SparseReader, WhatTheSourceThrowsSurfacesAfterTheBatchesBeforeItAndEachTime) {
  for (const std::size_t threads : {1U, 2U, 8U}) {
    MappedUpstream upstream(mib(64));
    ManualProgress progress;
    const SparseSource source = [&](std::uint64_t index, SparseRows& rows) {
      if (index >= 3) throw std::runtime_error("row " + std::to_string(index));
      numbered_source()(index, rows);
    };
    SparseReader reader({upstream, progress}, source, {.threads = threads, .ahead = 8});
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(number_of(reader.next()), i);
    for (int again = 0; again < 2; ++again) {
      try {
        (void)reader.next();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "row 3");
      }
    }
  }
}

TEST_F(SparseReaderTest, WhatTheSourceThrowsWakesWhoWaitsForABatch) {
  Gate making;
  const SparseSource source = [&](std::uint64_t, SparseRows&) {
    making.pass();
    throw std::runtime_error("the file ends here");
  };
  SparseReader reader({upstream, progress}, source, {.threads = 2, .ahead = 2});
  auto waiting = std::async(std::launch::async, [&] { (void)reader.next(); });
  making.await_arrival();
  give_others_a_chance();
  making.open();
  EXPECT_THROW(waiting.get(), std::runtime_error);
}

TEST_F(SparseReaderTest, AnEmptyBatchIsAnErrorOfTheSource) {
  SparseReader reader({upstream, progress}, [](std::uint64_t, SparseRows&) {}, {});
  EXPECT_THROW((void)reader.next(), UsageError);
}

TEST(SparseReader, EndsWhileItsThreadsWaitForRoomMemoryOrTurns) {
  for (int round = 0; round < 20; ++round) {
    MappedUpstream upstream(round % 2 == 0 ? mib(64) : kib(1));
    ManualProgress progress;
    Gate making;
    const SparseSource source = [&](std::uint64_t index, SparseRows& rows) {
      if (round % 4 >= 2 && index == 1) making.pass();
      numbered_source()(index, rows);
    };
    std::optional<SparseReader> reader;
    reader.emplace(DeviceMemory{upstream, progress}, source,
                   SparseReaderOptions{.threads = 4, .ahead = 3});
    EXPECT_EQ(number_of(reader->next()), 0U);
    std::thread opening;
    if (round % 4 >= 2) {
      making.await_arrival();
      opening = std::thread([&] { making.open(); });
    }
    if (round < 10) give_others_a_chance();
    reader.reset();
    if (opening.joinable()) opening.join();
    EXPECT_EQ(upstream.used(), Bytes{});
  }
}

TEST(SparseReader, NeedsAThreadAndABatchAhead) {
  MappedUpstream upstream(mib(1));
  ManualProgress progress;
  for (const SparseReaderOptions& options :
       {SparseReaderOptions{.threads = 0}, SparseReaderOptions{.ahead = 0}}) {
    EXPECT_THROW(SparseReader({upstream, progress}, numbered_source(), options), UsageError);
  }
}

TEST(StagingRoom, GrowsOnlyForABatchThatDoesNotFitAndByAnEighth) {
  EXPECT_EQ(staging_room(1, 0), 256U);
  EXPECT_EQ(staging_room(256, 256), 256U);
  EXPECT_EQ(staging_room(257, 256), 512U);
  EXPECT_EQ(staging_room(100'000, 0), 112'640U);  // 112,500 in whole KiB
  EXPECT_EQ(staging_room(112'640, 112'640), 112'640U);
  EXPECT_EQ(staging_room(5, 112'640), 112'640U);
}

/// The entries of a matrix by row and column: what a dense matrix would hold, but narrower.
using Entries = std::map<std::pair<std::uint32_t, std::uint32_t>, float>;

/// Rows of up to six entries in ascending columns, some of them without any.
SparseRows random_rows(std::size_t count, std::uint64_t columns, std::uint32_t seed) {
  std::mt19937 random(seed);
  SparseRows rows;
  rows.columns = columns;
  rows.classes = 1000;
  for (std::size_t r = 0; r < count; ++r) {
    std::map<std::uint32_t, float> row;
    for (auto left = random() % 7; left > 0; --left) {
      // Half of them from few columns, so that columns have several rows.
      const std::uint64_t range = left % 2 == 0 ? columns : std::min<std::uint64_t>(columns, 9);
      row[static_cast<std::uint32_t>(columns - 1 - random() % range)] =
          static_cast<float>(random());
    }
    for (const auto& [column, value] : row) {
      rows.indices.push_back(column);
      rows.values.push_back(value);
    }
    for (std::uint32_t label = 0; label < random() % 3; ++label) {
      rows.labels.push_back(label * 100 + static_cast<std::uint32_t>(r));
    }
    rows.end_row();
  }
  return rows;
}

Entries entries_of(const SparseRows& rows) {
  Entries entries;
  for (std::uint32_t r = 0; r < rows.rows(); ++r) {
    for (std::uint64_t i = rows.starts[r]; i < rows.starts[r + 1]; ++i) {
      entries[{r, rows.indices[i]}] = rows.values[i];
    }
  }
  return entries;
}

void expect_packed(BatchPacker& packer, const SparseRows& rows) {
  const PackedSizes sizes = packer.prepare(rows);
  std::vector<float> words(packed_words(sizes));
  packer.write(rows, words);
  const SparseBatch batch = unpack(words, sizes, {rows.columns, rows.classes});

  Entries by_row;
  ASSERT_EQ(batch.rows.rows(), rows.rows());
  for (std::uint32_t r = 0; r < rows.rows(); ++r) {
    for (std::uint32_t i = batch.rows.starts[r]; i < batch.rows.starts[r + 1]; ++i) {
      by_row[{r, batch.rows.indices[i]}] = batch.rows.values[i];
    }
    EXPECT_TRUE(std::equal(rows.labels.data() + rows.label_starts[r],
                           rows.labels.data() + rows.label_starts[r + 1],
                           batch.labels.indices.data() + batch.labels.starts[r],
                           batch.labels.indices.data() + batch.labels.starts[r + 1]));
  }
  EXPECT_EQ(by_row, entries_of(rows));

  const CsrColumns& columns = batch.columns;
  Entries by_column;
  ASSERT_EQ(columns.starts.size(), columns.touched.size() + 1);
  EXPECT_EQ(columns.starts.front(), 0U);
  EXPECT_EQ(columns.starts.back(), rows.indices.size());
  for (std::size_t t = 0; t < columns.touched.size(); ++t) {
    EXPECT_TRUE(t == 0 || columns.touched[t - 1] < columns.touched[t]);
    EXPECT_LT(columns.starts[t], columns.starts[t + 1]) << "a column without entries";
    for (std::uint32_t i = columns.starts[t]; i < columns.starts[t + 1]; ++i) {
      EXPECT_TRUE(i == columns.starts[t] || columns.rows[i - 1] < columns.rows[i]);
      by_column[{columns.rows[i], columns.touched[t]}] = columns.values[i];
    }
  }
  EXPECT_EQ(by_column, entries_of(rows));
}

TEST(BatchPacker, HoldsTheSameEntriesByRowsAndByColumns) {
  // From one digit of the radix sort to three.
  BatchPacker packer;
  for (const std::uint64_t columns :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{2048}, std::uint64_t{2049},
        std::uint64_t{250'000}, std::uint64_t{1} << 22U, (std::uint64_t{1} << 22U) + 1,
        kMostSparse}) {
    for (const std::size_t rows : {1U, 2U, 90U}) {
      SCOPED_TRACE(std::to_string(columns) + " columns, " + std::to_string(rows) + " rows");
      expect_packed(packer, random_rows(rows, columns, static_cast<std::uint32_t>(rows)));
    }
  }
}

TEST(BatchPacker, ABatchMayHaveNoEntriesAndNoLabels) {
  SparseRows rows;
  rows.columns = 7;
  rows.classes = 7;
  rows.end_row();
  BatchPacker packer;
  expect_packed(packer, rows);
  EXPECT_EQ(packer.prepare(rows),
            (PackedSizes{.rows = 1, .entries = 0, .touched = 0, .labels = 0}));
}

TEST(BatchPacker, RefusesNoRowsAndMemoryOfAnotherSize) {
  BatchPacker packer;
  EXPECT_THROW((void)packer.prepare(SparseRows{}), UsageError);
  const SparseRows rows = random_rows(5, 100, 1);
  std::vector<float> words(packed_words(packer.prepare(rows)) + 1);
  EXPECT_THROW(packer.write(rows, words), UsageError);
}

}  // namespace
}  // namespace weir::testing
