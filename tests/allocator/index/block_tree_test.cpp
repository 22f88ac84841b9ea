#include "allocator/index/block_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/random_seed.hpp"

namespace weir {
namespace {

using Place = std::pair<std::uint64_t, std::uintptr_t>;

/// Adapts a tree to the typed tests: sets and reads a block's key, and returns a block's children.
struct BySize {
  using Tree = SizeTree;
  static void set(Block& block, std::uint64_t key) { block.size = Bytes{key}; }
  static std::uint64_t get(const Block& block) { return block.size.count; }
  static std::array<Block*, 2> children(const Block& block) {
    return {block.by_stream.previous, block.by_stream.next};
  }
};
struct ByAge {
  using Tree = AgeTree;
  static void set(Block& block, std::uint64_t key) { block.note_moved(key); }
  static std::uint64_t get(const Block& block) { return block.moved_at; }
  static std::array<Block*, 2> children(const Block& block) {
    return {block.in_tree.previous, block.in_tree.next};
  }
};

template <typename Order>
class BlockTreeTest : public ::testing::Test {
 protected:
  explicit BlockTreeTest(std::size_t count = 4096) : blocks(count) {
    for (std::size_t i = 0; i < count; ++i)
      blocks[i].pointer = reinterpret_cast<void*>(4096 * (i + 1));
  }
  static Place place_of(const Block* block) {
    return block != nullptr ? Place{Order::get(*block), block->begin()} : Place{};
  }

  std::vector<Block> blocks;  ///< at addresses of their own
  typename Order::Tree tree;
};

using Orders = ::testing::Types<BySize, ByAge>;
TYPED_TEST_SUITE(BlockTreeTest, Orders, );

TYPED_TEST(BlockTreeTest, IsEmptyAtFirst) {
  EXPECT_TRUE(this->tree.empty());
  EXPECT_EQ(this->tree.front(), nullptr);
  EXPECT_EQ(this->tree.back(), nullptr);
  EXPECT_EQ(this->tree.first_from(0), nullptr);
}

TYPED_TEST(BlockTreeTest, HasItsBlocksInTheOrderOfASet) {
  constexpr std::size_t kBlocks = 500;
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  std::mt19937_64 random(seed);
  std::vector<bool> in_tree(kBlocks);
  std::set<Place> model;
  const auto first_of_model = [&](std::uint64_t key) {
    const auto found = model.lower_bound({key, 0});
    return found != model.end() ? *found : Place{};
  };
  for (std::uint64_t step = 1; step <= 20'000; ++step) {
    // Often the last, which the tree remembers.
    Block* const last = random() % 4 == 0 ? this->tree.back() : nullptr;
    Block& block = last != nullptr ? *last : this->blocks[random() % kBlocks];
    const auto i = static_cast<std::size_t>(&block - this->blocks.data());
    if (in_tree[i]) {
      model.erase(this->place_of(&block));
      this->tree.remove(block);
    } else {
      // The largest, one near it, one of all, or one of a hundred, which many have.
      const std::uint64_t near = step - random() % std::min<std::uint64_t>(step, 100);
      const std::uint64_t keys[] = {step, near, random() % step, random() % 100};
      TypeParam::set(block, keys[random() % 4]);
      this->tree.insert(block);
      model.insert(this->place_of(&block));
    }
    in_tree[i] = !in_tree[i];
    ASSERT_EQ(this->tree.empty(), model.empty());
    const std::uint64_t key = random() % (random() % 2 == 0 ? 101 : step + 2);
    ASSERT_EQ(this->place_of(this->tree.first_from(key)), first_of_model(key));
    if (model.empty()) continue;
    ASSERT_EQ(this->place_of(this->tree.front()), *model.begin());
    ASSERT_EQ(this->place_of(this->tree.back()), *model.rbegin());
    if (step % 100 != 0) continue;
    const Block* each = this->tree.front();
    for (const Place& place : model) {
      ASSERT_EQ(this->place_of(each), place);
      each = this->tree.next(*each);
    }
    ASSERT_EQ(each, nullptr);
  }
}

TYPED_TEST(BlockTreeTest, IsNoDeeperThanALogarithmHoweverItsBlocksCome) {
  // A third of them in order, a third from the last to the first, and a third in between.
  const std::uint64_t count = this->blocks.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t keys[] = {count + i, i, count - i};
    TypeParam::set(this->blocks[i], keys[i * 3 / count]);
    this->tree.insert(this->blocks[i]);
  }
  std::unordered_map<const Block*, const Block*> parents;
  for (const Block& block : this->blocks) {
    for (const Block* child : TypeParam::children(block)) {
      if (child != nullptr) parents.emplace(child, &block);
    }
  }
  ASSERT_EQ(parents.size(), this->blocks.size() - 1) << "all but the root are below one other";
  std::size_t deepest = 0;
  for (const Block& block : this->blocks) {
    std::size_t depth = 1;
    for (auto above = parents.find(&block); above != parents.end();
         above = parents.find(above->second)) {
      ++depth;
    }
    deepest = std::max(deepest, depth);
  }
  EXPECT_LE(deepest, 48U) << "4 times the logarithm of how many there are";
}

}  // namespace
}  // namespace weir
