#include "allocator/index/size_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/random_seed.hpp"

namespace weir {
namespace {

using SizeAndAddress = std::pair<Bytes, std::uintptr_t>;

SizeAndAddress place_of(const Block* piece) {
  return piece != nullptr ? SizeAndAddress{piece->size, piece->begin()} : SizeAndAddress{};
}

std::vector<Block> pieces_at_addresses(std::size_t count) {
  std::vector<Block> pieces(count);
  for (std::size_t i = 0; i < count; ++i)
    pieces[i].pointer = reinterpret_cast<void*>(kib(4).count * (i + 1));
  return pieces;
}

TEST(SizeTree, IsEmptyAtFirst) {
  const SizeTree tree;
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(tree.first_from({}), nullptr);
  EXPECT_EQ(tree.largest(), nullptr);
}

TEST(SizeTree, HasItsPiecesInTheOrderOfASet) {
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  std::mt19937_64 random(seed);
  std::vector<Block> pieces = pieces_at_addresses(500);
  std::vector<bool> in_tree(pieces.size());
  SizeTree tree;
  std::set<SizeAndAddress> model;
  const auto first_of_model = [&](Bytes size) {
    const auto found = model.lower_bound({size, 0});
    return found != model.end() ? *found : SizeAndAddress{};
  };
  for (std::uint64_t step = 1; step <= 20'000; ++step) {
    const std::size_t i = random() % pieces.size();
    if (in_tree[i]) {
      model.erase(place_of(&pieces[i]));
      tree.remove(pieces[i]);
    } else {
      pieces[i].size = kib(random() % 100);  // so that many are of one size
      tree.insert(pieces[i]);
      model.insert(place_of(&pieces[i]));
    }
    in_tree[i] = !in_tree[i];
    ASSERT_EQ(tree.empty(), model.empty());
    const Bytes size = kib(random() % 101);
    ASSERT_EQ(place_of(tree.first_from(size)), first_of_model(size));
    if (model.empty()) continue;
    ASSERT_EQ(place_of(tree.largest()), *model.rbegin());
    if (step % 100 != 0) continue;
    const Block* piece = tree.first_from({});
    for (const SizeAndAddress& place : model) {
      ASSERT_EQ(place_of(piece), place);
      piece = tree.next(*piece);
    }
    ASSERT_EQ(piece, nullptr);
  }
}

TEST(SizeTree, IsNoDeeperThanALogarithmHoweverItsPiecesCome) {
  std::vector<Block> pieces = pieces_at_addresses(4096);
  SizeTree tree;
  // Half of them in the order of their sizes, the others from the largest to the smallest.
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].size = kib(i % 2 == 0 ? i : pieces.size() - i);
    tree.insert(pieces[i]);
  }
  std::unordered_map<const Block*, const Block*> parents;
  for (const Block& piece : pieces) {
    for (const Block* child : {piece.by_stream.previous, piece.by_stream.next}) {
      if (child != nullptr) parents.emplace(child, &piece);
    }
  }
  ASSERT_EQ(parents.size(), pieces.size() - 1) << "all but the root are below one other";
  std::size_t deepest = 0;
  for (const Block& piece : pieces) {
    std::size_t depth = 1;
    for (auto above = parents.find(&piece); above != parents.end();
         above = parents.find(above->second)) {
      ++depth;
    }
    deepest = std::max(deepest, depth);
  }
  EXPECT_LE(deepest, 48U) << "4 times the logarithm of how many there are";
}

}  // namespace
}  // namespace weir
