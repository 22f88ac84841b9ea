// Pools in a program whose heap is exhausted: each allocation of each call fails once. The call
// throws, and changes nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/index/free_bins.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/pool.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/failing_new.hpp"
#include "support/one_counter.hpp"

namespace weir {
namespace {

using testing::options_of;

constexpr StreamId kA{1};
constexpr StreamId kB{2};
constexpr StreamId kC{3};
constexpr Bytes kBudget = mib(64);

/// A pool in use, with every block known.
class Scene {
 public:
  /// Nothing is allocated.
  Scene(PoolKind kind, Bytes budget) : pool_({upstream_, progress_}, options_of(budget, kind)) {}
  explicit Scene(PoolKind kind) : Scene(kind, kBudget) {
    // In both areas; every second one is freed, on two streams, and the device has passed one.
    for (int i = 0; i < 8; ++i) {
      take(kib(6), kA);
      take(mib(3), kA);
    }
    take(mib(2), kB);
    for (std::size_t i = 0; i < 8; i += 2) free(i, kA);
    progress_.pass_all();
    pool_.poll();
    free_last(kB);
    free(0, kA);
  }
  ~Scene() {
    while (!held_.empty()) free(0, kC);
    progress_.pass_all();
    pool_.trim();
    EXPECT_EQ(pool_.statistics().reserved.current, Bytes{});
    EXPECT_EQ(upstream_.used(), Bytes{});
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  [[nodiscard]] Pool& pool() { return pool_; }
  [[nodiscard]] testing::OneCounter& progress() { return progress_; }
  [[nodiscard]] void* block(std::size_t i) const { return held_.at(i); }
  [[nodiscard]] std::size_t size() const { return held_.size(); }
  [[nodiscard]] StreamId home(std::size_t i) const { return pool_.find(held_.at(i))->home; }
  void take(Bytes size, StreamId stream) {
    held_.push_back(nullptr);
    held_.back() = pool_.allocate(size, stream);
  }
  void free(std::size_t i, StreamId stream) {
    pool_.deallocate(held_.at(i), stream);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void free_last(StreamId stream) { free(held_.size() - 1, stream); }
  /// Removes what an allocation that threw left behind.
  void settle() { std::erase(held_, nullptr); }

  void expect_statistics_agree() const {
    const Statistics s = pool_.statistics();
    EXPECT_EQ(s.allocated.current + s.awaiting.current + s.cached.current, s.reserved.current);
    EXPECT_EQ(s.reserved.current, upstream_.used());
    Bytes allocated;
    for (void* pointer : held_) {
      const auto block = pool_.find(pointer);
      ASSERT_TRUE(block.has_value()) << "not allocated any more";
      allocated += block->size;
    }
    EXPECT_EQ(s.allocated.current, allocated);
  }

 private:
  SimulatedUpstream upstream_{gib(1), testing::kPage};
  testing::OneCounter progress_;
  Pool pool_;
  std::vector<void*> held_;
};

/// Counts the reserved addresses without heap memory.
class CountedAddresses final : public Upstream, private PageSource {
 public:
  CountedAddresses() { (void)inner_.pages(); }  // made now
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }

  [[nodiscard]] void* allocate(Bytes size) override { return inner_.allocate(size); }
  void deallocate(void* pointer, Bytes size) noexcept override { inner_.deallocate(pointer, size); }
  [[nodiscard]] Bytes capacity() const override { return inner_.capacity(); }
  [[nodiscard]] PageSource* pages() noexcept override { return this; }

 private:
  [[nodiscard]] Bytes page_size() const override { return testing::kPage; }
  [[nodiscard]] void* reserve(Bytes size) override {
    void* const address = inner_.pages()->reserve(size);
    if (address != nullptr) reserved_ += size.count;
    return address;
  }
  void unreserve(void* address, Bytes size) noexcept override {
    reserved_ -= size.count;
    inner_.pages()->unreserve(address, size);
  }
  [[nodiscard]] std::size_t create(std::span<Page> pages) override {
    return inner_.pages()->create(pages);
  }
  void destroy(std::span<const Page> pages) noexcept override { inner_.pages()->destroy(pages); }
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override {
    return inner_.pages()->map(mappings);
  }
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override {
    return inner_.pages()->unmap(mappings);
  }

  SimulatedUpstream inner_{gib(1), testing::kPage};
  std::uint64_t reserved_ = 0;
};

class PoolHeap : public ::testing::TestWithParam<PoolKind> {
 protected:
  /// Calls `act` with its first allocation failing, then its second, until it succeeds.
  void fail_each(const std::function<void(Scene&)>& act) {
    testing::for_each_allocation([&](std::uint64_t n) {
      Scene scene(GetParam());
      scene.expect_statistics_agree();
      const bool struck = testing::fails_at(n, [&] { act(scene); });
      scene.settle();
      scene.expect_statistics_agree();
      for (const Bytes size : {kib(4), mib(2), mib(4)}) scene.take(size, kC);
      scene.expect_statistics_agree();
      return struck;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolHeap, ::testing::ValuesIn(testing::kAllKinds),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(PoolHeap, RunsOutWhileABlockIsTakenFromTheCache) {
  fail_each([](Scene& scene) { scene.take(kib(4), kA); });
}

TEST_P(PoolHeap, RunsOutWhileThePoolGrows) {
  fail_each([](Scene& scene) { scene.take(mib(9), kA); });
}

TEST_P(PoolHeap, RunsOutWhileManyBlocksAreTaken) {
  fail_each([](Scene& scene) {
    for (int i = 0; i < 300; ++i) scene.take({512}, kB);
  });
}

TEST_P(PoolHeap, RunsOutWhileWhatIsFreeMakesRoom) {
  fail_each([](Scene& scene) {
    scene.progress().pass_all();
    scene.take(mib(32), kA);
  });
}

TEST_P(PoolHeap, RunsOutWhileABlockIsFreedThatOtherStreamsUse) {
  fail_each([](Scene& scene) {
    scene.pool().record_use(scene.block(1), kB);
    scene.pool().record_use(scene.block(1), kC);
    scene.free(1, kA);
  });
}

TEST_P(PoolHeap, RunsOutWhileAStreamFreesItsFirstBlock) {
  fail_each([](Scene& scene) {
    scene.take(kib(4), kC);
    scene.free_last(kC);
  });
}

TEST_P(PoolHeap, IsNotNeededForTheFreeOfABlock) {
  Scene scene(GetParam());
  const std::size_t first = 12;  // of those that are freed here
  for (const StreamId stream : {kC, kB, kC}) {
    scene.take(kib(4), stream);
    scene.take(mib(3), stream);
    scene.take(mib(7), stream);
  }
  for (std::size_t i = first; i < first + 4; ++i) {
    scene.pool().record_use(scene.block(i), kA);
    scene.pool().record_use(scene.block(i), kB);
  }
  testing::fail_new_at(1);
  while (scene.size() != first) EXPECT_NO_THROW(scene.free(first, scene.home(first)));
  const bool struck = testing::stop_failing_new();
  EXPECT_TRUE(!struck || GetParam() == PoolKind::kUnpooled) << "which gives back what it can";
  scene.expect_statistics_agree();
}

TEST_P(PoolHeap, RunsOutWhileTheDeviceHandsABlockOver) {
  fail_each([](Scene& scene) {
    scene.pool().set_limits(scene.pool().statistics().reserved.current, {.wait = false});
    const auto reset = [&] { scene.pool().set_limits(kBudget, {}); };
    try {
      scene.take(mib(3), kC);
    } catch (const OutOfMemory&) {
      EXPECT_EQ(GetParam(), PoolKind::kUnpooled);
    } catch (...) {
      reset();
      throw;
    }
    reset();
  });
}

TEST_P(PoolHeap, RunsOutWhileThePoolIsTrimmed) {
  fail_each([](Scene& scene) {
    scene.progress().pass_all();
    scene.pool().trim();
  });
}

// Bins work without memory for their trees.
TEST(FreeBins, FindPiecesThoughTheHeapHasRunOut) {
  constexpr std::size_t kPieces = 60;
  std::array<Block, kPieces> pieces;
  FreeBins bins;
  testing::fail_each_new();
  for (std::size_t i = 0; i < kPieces; ++i) {
    pieces[i].pointer = reinterpret_cast<void*>(mib(64).count * (i + 1));
    pieces[i].size = kib(4) * (i * i + 1);
    bins.insert(pieces[i]);
  }
  EXPECT_TRUE(testing::stop_failing_new());
  const auto expect_found = [&](std::size_t from) {
    EXPECT_EQ(bins.largest(), pieces[kPieces - 1].size);
    for (std::size_t i = from; i < kPieces; ++i) {
      const Block* const best = bins.best(pieces[i].size);
      ASSERT_NE(best, nullptr);
      EXPECT_GE(best->size, pieces[i].size);
      EXPECT_LE(best->size, pieces[std::min(i + 3, kPieces - 1)].size);
    }
    std::size_t count = 0;
    bins.for_each_largest([&](Block& /*piece*/) { return ++count != 0; });
    EXPECT_EQ(count, kPieces - from);
    count = 0;
    bins.for_each_fit(pieces[20].size, [&](Block& piece) {
      EXPECT_GE(piece.size, pieces[20].size);
      return ++count != 0;
    });
    EXPECT_EQ(count, kPieces - 20);
  };
  expect_found(0);
  bins.remove(pieces[0]);
  expect_found(1);
  // Pieces with memory are sorted in, and the rest found as before.
  bins.insert(pieces[0]);
  expect_found(0);
  bins.reserve(pieces[kPieces - 1].size);
  expect_found(0);
  for (Block& piece : pieces) bins.remove(piece);
  EXPECT_EQ(bins.bytes(), Bytes{});
  EXPECT_EQ(bins.largest(), Bytes{});
}

TEST(PoolHeapPaged, RunsOutWhileAddressesAreReservedAndGivesThemBack) {
  testing::for_each_allocation([](std::uint64_t n) {
    CountedAddresses upstream;
    testing::OneCounter progress;
    bool struck = false;
    {
      Pool pool({upstream, progress}, options_of(mib(64), PoolKind::kPaged));
      struck = testing::fails_at(n, [&] { (void)pool.allocate(mib(1), kA); });
    }
    EXPECT_EQ(upstream.reserved(), 0U);
    return struck;
  });
}

TEST(PoolHeapPaged, RunsOutWhilePagesMoveHoweverFullTheTableOfBlocksIs) {
  // Blocks' memory is allocated for several at once: some request meets its end.
  constexpr std::size_t kOthers = 140;
  constexpr std::size_t kSingle = 40;
  constexpr Bytes kPage = testing::kPage;
  for (std::size_t others = 0; others < kOthers && !::testing::Test::HasFailure(); ++others) {
    SCOPED_TRACE(std::to_string(others) + " others");
    testing::for_each_allocation([&](std::uint64_t n) {
      Scene scene(PoolKind::kPaged, kPage * (kSingle + others));
      for (std::size_t i = 0; i < kSingle + others; ++i) scene.take(kPage, kA);
      for (std::size_t i = 0; i < kSingle / 2; ++i) scene.free(i, kA);  // of two one stays
      scene.free_last(kA);  // where the block will begin
      scene.progress().pass_all();
      const bool struck =
          testing::fails_at(n, [&] { scene.take(kPage * (kSingle / 2 - 2) + Bytes{512}, kB); });
      scene.settle();
      scene.expect_statistics_agree();
      return struck;
    });
  }
}

}  // namespace
}  // namespace weir
