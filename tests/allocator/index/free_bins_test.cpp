#include "allocator/index/free_bins.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <vector>

#include "support/random_seed.hpp"

namespace weir {
namespace {

/// Sizes of two large bins, of one far below, and of one with a single size.
Bytes draw_size(std::mt19937_64& random) {
  const Bytes more = FreeBins::kGranule * (random() % 40);
  switch (random() % 3) {
    case 0:
      return mib(1) + kib(512) + more;
    case 1:
      return kib(256) + FreeBins::kGranule * (random() % 8);
    default:
      return kib(8);
  }
}

/// Pieces at addresses of their own, in bins.
struct BinnedPieces {
  template <typename SizeOf>
  BinnedPieces(std::size_t count, const SizeOf& size_of) : pieces(count) {
    bins.reserve(mib(8));
    for (std::size_t i = 0; i < count; ++i) {
      pieces[i].pointer = reinterpret_cast<void*>(mib(4).count * (i + 1));
      pieces[i].size = size_of(i);
      bins.insert(pieces[i]);
    }
  }
  std::vector<Block> pieces;
  FreeBins bins;
};

TEST(FreeBins, FindAPieceThatFitsWheneverThereIsOne) {
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  std::mt19937_64 random(seed);
  std::vector<Block> pieces(2000);
  std::vector<bool> is_in(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pieces[i].pointer = reinterpret_cast<void*>(mib(4).count * (i + 1));
  FreeBins bins;
  bins.reserve(mib(4));
  std::multiset<Bytes> model;
  std::uint64_t narrow = 0;
  for (std::uint64_t step = 1; step <= 40'000; ++step) {
    // They fill and empty repeatedly, so that bins have few, many and no pieces.
    const bool fills = step / 10'000 % 2 == 0;
    const std::size_t i = (fills ? random() : step) % pieces.size();
    if (is_in[i] && (!fills || random() % 16 == 0)) {
      model.erase(model.find(pieces[i].size));
      bins.remove(pieces[i]);
      is_in[i] = false;
    } else if (!is_in[i] && fills) {
      pieces[i].size = draw_size(random);
      model.insert(pieces[i].size);
      bins.insert(pieces[i]);
      is_in[i] = true;
    }
    const Bytes largest = model.empty() ? Bytes{} : *model.rbegin();
    ASSERT_EQ(bins.largest(), largest);
    Bytes sum;
    for (const Bytes each : model) sum += each;
    ASSERT_EQ(bins.bytes(), sum);
    const Bytes size = draw_size(random);
    const Block* best = bins.best(size);
    ASSERT_EQ(best == nullptr, size > largest) << size.count;
    if (best == nullptr) continue;
    ASSERT_GE(best->size, size);
    ASSERT_NE(model.find(best->size), model.end());
    if (largest.count < size.count + size.count / 64) ++narrow;
  }
  EXPECT_GT(narrow, 1000U) << "the last bin alone could serve too few to say anything";
}

TEST(FreeBins, VisitEachPieceOnceFromTheLargestBinOnAndUntilTheyAreToldToStop) {
  // In two bins, each with a tree.
  BinnedPieces binned(
      800, [](std::size_t i) { return mib(2 + 2 * (i % 2)) + FreeBins::kGranule * (i % 7); });
  auto& [pieces, bins] = binned;
  std::set<const Block*> visited;
  bool of_the_larger_bin = true;
  bins.for_each_largest([&](const Block& piece) {
    if (piece.size < mib(4)) of_the_larger_bin = false;
    EXPECT_EQ(piece.size >= mib(4), of_the_larger_bin);
    visited.insert(&piece);
    return true;
  });
  EXPECT_EQ(visited.size(), pieces.size());
  std::size_t count = 0;
  bins.for_each_largest([&](const Block&) { return ++count < 5; });
  EXPECT_EQ(count, 5U);
}

TEST(FreeBins, VisitPiecesThatFitFromTheSizesNextToTheRequestOn) {
  // Three in the request's own bin, one of which is too small, and a few in each larger one.
  const Bytes size = mib(1) + kib(8);
  const std::vector<Bytes> sizes{mib(1) + kib(4),  size,   size + kib(1),
                                 mib(1) + kib(64), mib(3), kib(512)};
  BinnedPieces binned(sizes.size(), [&](std::size_t i) { return sizes[i]; });
  FreeBins& bins = binned.bins;
  std::vector<Bytes> visited;
  bins.for_each_fit(size, [&](const Block& piece) {
    visited.push_back(piece.size);
    return true;
  });
  EXPECT_EQ(visited, (std::vector<Bytes>{sizes[1], sizes[2], sizes[3], sizes[4]}));
  visited.clear();
  bins.for_each_fit(size, [&](const Block& piece) {
    visited.push_back(piece.size);
    return visited.size() < 2;
  });
  EXPECT_EQ(visited.size(), 2U);
}

TEST(FreeBins, VisitPiecesThatFitOfABinThatIsATree) {
  BinnedPieces binned(1000, [](std::size_t i) { return mib(2) + FreeBins::kGranule * (i % 32); });
  auto& [pieces, bins] = binned;
  std::set<const Block*> visited;
  bins.for_each_fit(mib(2) + FreeBins::kGranule * 16, [&](const Block& piece) {
    EXPECT_GE(piece.size, mib(2) + FreeBins::kGranule * 16);
    visited.insert(&piece);
    return true;
  });
  const auto fit = std::ranges::count_if(
      pieces, [](const Block& piece) { return piece.size >= mib(2) + FreeBins::kGranule * 16; });
  EXPECT_EQ(visited.size(), static_cast<std::size_t>(fit));
}

TEST(FreeBins, AreNoLongListWhereTheyHaveToFindASize) {
  // In one bin, which does not tell whether one of them fits.
  BinnedPieces binned(100'000,
                      [](std::size_t i) { return mib(2) + FreeBins::kGranule * (i % 32); });
  auto& [pieces, bins] = binned;
  EXPECT_EQ(bins.best(mib(2) + FreeBins::kGranule * 32), nullptr);
  // One of the two links makes a list of all of them.
  std::size_t most = 0;
  for (std::size_t i = 0; i < pieces.size(); i += 97) {
    std::size_t steps = 0;
    const Block* piece = &pieces[i];
    for (; piece != nullptr && steps < pieces.size(); ++steps) piece = piece->by_stream.next;
    most = std::max(most, steps);
  }
  EXPECT_LE(most, 68U) << "4 times the logarithm of how many there are";
}

}  // namespace
}  // namespace weir
