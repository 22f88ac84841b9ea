// Streams that used a pool and ended cost nothing afterwards.

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/index/segment_index.hpp"
#include "allocator/index/size_class_index.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/host_bytes.hpp"
#include "support/one_counter.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

class PoolOfStreamsThatAreGone : public ::testing::TestWithParam<PoolKind> {
 protected:
  /// So many streams at a time allocate, free and end.
  void use(std::size_t streams, std::size_t at_a_time) {
    for (std::size_t done = 0; done < streams; done += at_a_time) {
      std::vector<std::pair<void*, StreamId>> held(at_a_time);
      for (auto& [pointer, stream] : held) {
        stream = StreamId::next();
        pointer = pool.allocate(kib(64), stream);
        pool.record_use(pointer,
                        StreamId::next());  // and a second one, which is never allocated on
      }
      for (const auto& [pointer, stream] : held) pool.deallocate(pointer, stream);
      progress.pass_all();
      pool.poll();
    }
  }

  SimulatedUpstream upstream{gib(1), mib(2)};
  testing::OneCounter progress;
  Pool pool{{upstream, progress}, testing::options_of(gib(1), GetParam())};
};

TEST_P(PoolOfStreamsThatAreGone, KeepsNoHostMemoryForThem) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer keeps what is freed";
  use(200, 1);
  const std::size_t before = testing::host_bytes();
  use(4000, 1);
  EXPECT_LE(testing::host_bytes(), before + kib(64).count) << "one after the other";
  use(400, 100);
  const std::size_t before_many = testing::host_bytes();
  use(4000, 100);
  EXPECT_LE(testing::host_bytes(), before_many + kib(64).count) << "a hundred at a time";
}

/// A pool with many streams, each of which has freed a block that the device has yet to pass.
class PoolOfManyPendingStreams : public ::testing::TestWithParam<PoolKind> {
 protected:
  static constexpr std::uint64_t kStreams = 200;

  PoolOfManyPendingStreams() {
    std::vector<void*> blocks;
    for (std::uint64_t i = 0; i < kStreams; ++i) {
      blocks.push_back(pool.allocate(mib(2), StreamId{first.value + i}));
    }
    for (std::uint64_t i = 0; i < kStreams; ++i) {
      pool.deallocate(blocks[i], StreamId{first.value + i});
    }
    before = progress.queries();
  }
  /// Queries since the last call.
  [[nodiscard]] std::uint64_t questions() {
    return progress.queries() - std::exchange(before, progress.queries());
  }

  std::uint64_t before = 0;
  const StreamId first = StreamId::next(kStreams);
  const StreamId other = StreamId::next();
  SimulatedUpstream upstream{gib(1), mib(2)};
  testing::ManualProgress progress;
  Pool pool{{upstream, progress}, testing::options_of(mib(2 * kStreams + 6), GetParam())};
};

TEST_P(PoolOfManyPendingStreams, AsksAFewBeforeItGrows) {
  (void)pool.allocate(mib(2), other);
  const std::uint64_t asked = questions();
  EXPECT_LE(asked, 16U);
  EXPECT_GT(asked, 0U);
}

TEST_P(PoolOfManyPendingStreams, AsksThemInTurn) {
  progress.pass_all(StreamId{first.value + kStreams - 1});
  for (int i = 0; i < 3; ++i) (void)pool.allocate(mib(2), other);
  EXPECT_LE(questions(), 48U);
  for (std::uint64_t i = 0; i < kStreams; ++i) progress.pass_all(StreamId{first.value + i});
  pool.poll();
  (void)questions();
  (void)pool.allocate(mib(2), other);
  EXPECT_EQ(questions(), 0U) << "nothing waits for any of them";
}

TEST_P(PoolOfManyPendingStreams, AsksThemAllBeforeARequestFails) {
  pool.set_limits(pool.budget(), {.hand_over = false, .wait = false});
  for (int i = 0; i < 3; ++i) (void)pool.allocate(mib(2), other);
  for (std::uint64_t i = 0; i < kStreams; i += 37) {
    progress.pass_all(StreamId{first.value + i});
    EXPECT_NO_THROW((void)pool.allocate(mib(2), other)) << "which stream " << i << " has passed";
  }
}

INSTANTIATE_TEST_SUITE_P(Pool, PoolOfManyPendingStreams,
                         ::testing::ValuesIn(testing::kKeepingKinds), testing::kind_name);

INSTANTIATE_TEST_SUITE_P(Pool, PoolOfStreamsThatAreGone,
                         ::testing::ValuesIn(testing::kKeepingKinds), testing::kind_name);

/// One block that stream after stream allocates and frees.
class IndexOfStreams {
 public:
  IndexOfStreams(BlockIndex& index, StreamId first) : index_(index) {
    block_ = &index_.add({reinterpret_cast<void*>(mib(2).count), mib(2)}, mib(2));
    free_on(first);
  }
  void pass_to(StreamId stream) {
    block_ = index_.take_passed(mib(2), stream);
    ASSERT_NE(block_, nullptr);
    free_on(stream);
  }

 private:
  void free_on(StreamId stream) {
    index_.hand_out(*block_, stream);
    index_.add_use(*block_, StreamId{stream.value + 1});
    block_->home_sequence = 1;
    for (Point& other : block_->other_points()) other.sequence = 1;
    EXPECT_EQ(index_.place_freed(*block_), BlockState::kAwaiting);
    EXPECT_EQ(index_.note_passed(stream, 1), Bytes{});
    EXPECT_EQ(index_.note_passed(StreamId{stream.value + 1}, 1), mib(2));
  }

  BlockIndex& index_;
  Block* block_ = nullptr;
};

TEST(BlockIndex, ForgetsAStreamThatNothingNamesAnyMore) {
  const auto expect_few = [](BlockIndex& index) {
    IndexOfStreams streams(index, StreamId{1});
    std::size_t most = 0;
    for (std::uint64_t i = 1; i < 50'000; ++i) {
      streams.pass_to(StreamId{1 + 2 * i});
      most = std::max(most, index.streams());
    }
    EXPECT_LE(most, BlockIndex::kIdleStreams + 2);
  };
  SizeClassIndex size_classes(SizeClassIndex::Reuse::kAll);
  expect_few(size_classes);
  SegmentIndex segments(mib(2), mib(64));
  expect_few(segments);
}

TEST(BlockIndex, ForgetsTheStreamsThatABlockOfOneStreamWasUsedOn) {
  constexpr StreamId kHome{1};
  SizeClassIndex index(SizeClassIndex::Reuse::kAll);
  Block* block = &index.add({reinterpret_cast<void*>(mib(2).count), mib(2)}, mib(2));
  for (std::uint64_t i = 1; i < 1000; ++i) {
    const StreamId user{1 + i};
    index.hand_out(*block, kHome);
    index.add_use(*block, user);
    block->home_sequence = i;
    block->other_points().front().sequence = 1;
    ASSERT_EQ(index.place_freed(*block), BlockState::kAwaiting);
    ASSERT_EQ(index.note_passed(user, 1), mib(2));
    block = index.take_own(mib(2), kHome);  // its point is not passed: the owner stays
    ASSERT_NE(block, nullptr);
    ASSERT_LE(index.streams(), BlockIndex::kIdleStreams + 2);
  }
}

/// A block that is freed, and awaits stream 2 until it has passed `sequence`.
Block& add_awaiting(BlockIndex& index, std::uint64_t sequence) {
  Block& block = index.add({reinterpret_cast<void*>(mib(2).count), mib(2)}, mib(2));
  index.hand_out(block, StreamId{1});
  index.add_use(block, StreamId{2});
  block.home_sequence = 1;
  block.other_points().front().sequence = sequence;
  EXPECT_EQ(index.place_freed(block), BlockState::kAwaiting);
  return block;
}

/// Streams come and go, and each free looks for streams to forget.
void let_many_come_and_go(BlockIndex& index) {
  std::uint64_t at = mib(4).count;
  for (std::uint64_t i = 10; i < 200; ++i, at += mib(2).count) {
    Block& other = index.add({reinterpret_cast<void*>(at), mib(2)}, mib(2));
    index.hand_out(other, StreamId{i});
    other.home_sequence = 1;
    ASSERT_EQ(index.place_freed(other), BlockState::kCached);
    (void)index.note_passed(StreamId{i}, 1);
  }
}

TEST(BlockIndex, KeepsAStreamAsLongAsABlockAwaitsIt) {
  SizeClassIndex index(SizeClassIndex::Reuse::kAll);
  (void)add_awaiting(index, 7);
  let_many_come_and_go(index);
  EXPECT_EQ(index.note_passed(StreamId{2}, 6), Bytes{});
  EXPECT_EQ(index.note_passed(StreamId{2}, 7), mib(2)) << "it was not forgotten";
}

TEST(BlockIndex, KeepsAStreamAsLongAsABlockAwaitsAPointThatIsYetToBeRecordedThere) {
  SizeClassIndex index(SizeClassIndex::Reuse::kAll);
  const Block& block = add_awaiting(index, Block::kUnrecorded);
  let_many_come_and_go(index);
  EXPECT_EQ(index.note_recorded({StreamId{2}, 7}, block.moved_at), Bytes{});
  EXPECT_EQ(index.note_passed(StreamId{2}, 7), mib(2)) << "it was not forgotten";
}

}  // namespace
}  // namespace weir
