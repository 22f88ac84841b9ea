#include "tools/timeline/recorder/chunks.hpp"

#include <gtest/gtest.h>

namespace weir::timeline {
namespace {

constexpr Bytes kEight = Chunk::kSize * 8;

TEST(ChunkStore, HandsOutNoMoreThanTheLimitAndMoreOnceTheyAreRead) {
  ChunkStore store(kEight);
  std::vector<Chunk*> taken;
  while (Chunk* chunk = store.exchange(nullptr)) taken.push_back(chunk);
  EXPECT_EQ(taken.size(), 8U);
  EXPECT_EQ(store.exchange(nullptr), nullptr);
  store.give(*taken[3]);
  EXPECT_EQ(store.exchange(nullptr), nullptr);  // it has not been read
  std::vector<Chunk*> full;
  std::vector<Chunk*> in_use;
  store.collect(full, in_use);
  ASSERT_EQ(full, std::vector<Chunk*>{taken[3]});
  EXPECT_EQ(in_use.size(), 7U);
  store.recycle(*full[0]);
  EXPECT_EQ(store.exchange(nullptr), taken[3]);
}

TEST(ChunkStore, IsHalfFullWhenHalfOfAllChunksWaitToBeRead) {
  ChunkStore store(kEight);
  Chunk* chunk = store.exchange(nullptr);
  for (int full = 1; full <= 4; ++full) {
    EXPECT_FALSE(store.is_half_full());
    chunk = store.exchange(chunk);
  }
  EXPECT_TRUE(store.is_half_full());
  std::vector<Chunk*> full;
  std::vector<Chunk*> in_use;
  store.collect(full, in_use);
  EXPECT_EQ(full.size(), 4U);
  EXPECT_FALSE(store.is_half_full());
  for (Chunk* each : full) store.recycle(*each);
}

TEST(ChunkStore, CanBeUsedAfterItGaveItsFreeMemoryBack) {
  ChunkStore store(kEight);
  Chunk* const used = store.exchange(nullptr);
  store.give(*used);
  std::vector<Chunk*> full;
  std::vector<Chunk*> in_use;
  store.collect(full, in_use);
  store.recycle(*full[0]);
  store.shrink();
  for (int i = 0; i < 8; ++i) ASSERT_NE(store.exchange(nullptr), nullptr);
  EXPECT_EQ(store.exchange(nullptr), nullptr);
}

}  // namespace
}  // namespace weir::timeline
