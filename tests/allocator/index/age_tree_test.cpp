#include "allocator/index/age_tree.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "support/random_seed.hpp"

namespace weir {
namespace {

using Key = std::pair<std::uint64_t, std::uintptr_t>;

Key key_of(const Block& block) { return {block.moved_at, block.begin()}; }

/// Blocks at addresses of their own, in no tree yet.
std::vector<Block> blocks_at_addresses(std::size_t count) {
  std::vector<Block> blocks(count);
  for (std::size_t i = 0; i < count; ++i)
    blocks[i].pointer = reinterpret_cast<void*>(4096 * (i + 1));
  return blocks;
}

TEST(AgeTree, IsEmptyAtFirst) {
  const AgeTree tree;
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(tree.front(), nullptr);
}

TEST(AgeTree, HasItsBlocksInTheOrderOfASet) {
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  std::mt19937_64 random(seed);
  std::vector<Block> blocks = blocks_at_addresses(500);
  std::vector<bool> in_tree(blocks.size());
  AgeTree tree;
  std::set<Key> model;
  for (std::uint64_t step = 1; step <= 20'000; ++step) {
    const std::size_t i = random() % blocks.size();
    if (in_tree[i]) {
      model.erase(key_of(blocks[i]));
      tree.remove(blocks[i]);
    } else {
      // Freed now, or long ago, and some at one time.
      blocks[i].note_moved(random() % 2 == 0 ? step : random() % step / 4);
      tree.insert(blocks[i]);
      model.insert(key_of(blocks[i]));
    }
    in_tree[i] = !in_tree[i];
    ASSERT_EQ(tree.empty(), model.empty());
    if (model.empty()) continue;
    ASSERT_EQ(key_of(*tree.front()), *model.begin());
    if (step % 100 != 0) continue;
    const Block* block = tree.front();
    for (const Key& key : model) {
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(key_of(*block), key);
      block = AgeTree::next(*block);
    }
    ASSERT_EQ(block, nullptr);
  }
}

TEST(AgeTree, IsNoDeeperThanALogarithmHoweverItsBlocksCome) {
  std::vector<Block> blocks = blocks_at_addresses(4096);
  AgeTree tree;
  // Half of them in the order of their age, the others from the youngest to the oldest.
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].note_moved(i % 2 == 0 ? i : blocks.size() - i);
    tree.insert(blocks[i]);
  }
  std::size_t deepest = 0;
  for (const Block& block : blocks) {
    std::size_t depth = 0;
    for (const Block* b = &block; b != nullptr; b = b->in_tree.parent) ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_LE(deepest, 48U) << "4 times the logarithm of how many there are";
}

}  // namespace
}  // namespace weir
