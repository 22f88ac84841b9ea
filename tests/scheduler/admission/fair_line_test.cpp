#include "scheduler/admission/fair_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

#include "support/print.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using testing::random_seed;
using testing::seed_message;

struct Batches {
  Bytes least{};
  Bytes most{};
  std::uint32_t weight = 1;
};
Batches all_of(Bytes bytes, std::uint32_t weight = 1) { return {bytes, bytes, weight}; }

/// A line that is always full: whoever is served is replaced at once. In the first slot is the same
/// producer each time; in the others are newcomers, who never return.
class FullLine {
 public:
  struct Slot {
    Batches batches;
    std::uint64_t producer = 0;
    FairLine::Place place{};
    double share = 0;  ///< bytes over the weight, served so far
    int turns = 0;
  };
  explicit FullLine(const std::vector<Batches>& slots, std::uint64_t seed = 1) : random_(seed) {
    for (const Batches& batches : slots) join(slots_.emplace_back(Slot{batches}));
  }

  void serve(int turns) {
    for (int i = 0; i < turns; ++i) {
      const FairLine::Place* const first = line.first();
      Slot& slot = *std::ranges::find_if(
          slots_, [first](const Slot& other) { return &other.place == first; });
      slot.share += static_cast<double>(first->bytes.count) / slot.batches.weight;
      ++slot.turns;
      line.serve(slot.place);
      if (&slot != &slots_.front()) slot.producer = 0;
      join(slot);
    }
  }
  /// Returns how many of the others' batches are served before one that joins now; `most` at most.
  int served_before(Bytes bytes, int most) {
    FairLine::Place own;
    line.join(own, ++producers_, bytes);
    int before = 0;
    for (; line.first() != &own && before < most; ++before) serve(1);
    line.leave(own);
    return before;
  }
  [[nodiscard]] const std::deque<Slot>& slots() const { return slots_; }

  FairLine line;

 private:
  void join(Slot& slot) {
    if (slot.producer == 0) slot.producer = ++producers_;
    const auto& [least, most, weight] = slot.batches;
    const Bytes bytes{least.count + random_() % (most.count - least.count + 1)};
    line.join(slot.place, slot.producer, bytes, weight);
  }

  std::mt19937_64 random_;
  std::deque<Slot> slots_;
  std::uint64_t producers_ = 0;
};

// Golestani 1994: the shares of two that always wait differ by at most a batch of each, however
// long the line is served.
void expect_fair(const std::vector<Batches>& slots, std::uint64_t seed = 1) {
  FullLine full(slots, seed);
  full.serve(20'000);
  const auto largest = [](const FullLine::Slot& slot) {
    return static_cast<double>(slot.batches.most.count) / slot.batches.weight;
  };
  for (const auto& one : full.slots()) {
    for (const auto& two : full.slots()) {
      EXPECT_NEAR(one.share, two.share, 1.01 * (largest(one) + largest(two)))
          << one.batches.most << " and " << two.batches.most;
    }
  }
}

TEST(FairLine, ANewcomerTakesNoTurnOfThoseWhoStay) {
  expect_fair({all_of(mib(1)), all_of(mib(1)), all_of(mib(1)), all_of(mib(1))});
  expect_fair({all_of(mib(10)), all_of(mib(1)), all_of(mib(1))});
  expect_fair({all_of(mib(1)), all_of(mib(10)), all_of(mib(10))});
}

TEST(FairLine, BytesAreSharedByWeightWhateverTheSizes) {
  expect_fair({all_of(mib(1), 3), all_of(mib(10))});
  expect_fair({all_of({7}, 2'000'000), all_of({7}, 1'000'000)});  // beyond the bytes of a batch
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    std::vector<Batches> slots(2 + random() % 5);
    for (Batches& batches : slots) {
      batches.most = {1 + random() % 4096};
      batches.least = {1 + random() % batches.most.count};
      batches.weight = static_cast<std::uint32_t>(1 + random() % 3);
    }
    expect_fair(slots, random());
  }
}

TEST(FairLine, NeitherALargeBatchNorASmallOneIsStarvedByNewcomers) {
  struct Case {
    Bytes own;
    Bytes others;
    int before;  ///< of each of three others
  };
  for (const auto& [own, others, before] :
       {Case{gib(1), mib(1), 1024}, Case{mib(1), mib(1), 1}, Case{kib(1), gib(1), 1}}) {
    FullLine full({all_of(others), all_of(others), all_of(others)});
    full.serve(1000);
    EXPECT_NEAR(full.served_before(own, 10'000), 3 * before, 3) << own << " beside " << others;
  }
}

TEST(FairLine, EqualsAreServedInTheOrderOfArrival) {
  FairLine line;
  EXPECT_EQ(line.first(), nullptr);
  std::vector<FairLine::Place> places(5);
  for (auto& place : places) line.join(place, 1, mib(1));
  for (auto& place : places) {
    ASSERT_EQ(line.first(), &place);
    line.serve(place);
  }
  EXPECT_EQ(line.first(), nullptr);
  EXPECT_TRUE(line.waiting().empty());
}

TEST(FairLine, WhoLeavesChangesNoOrder) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  FairLine line;
  FairLine without;  // the same, but nobody leaves it
  std::array<FairLine::Place, 4> places;
  std::array<FairLine::Place, 4> same;
  const auto join = [&](std::size_t i) {
    const Bytes bytes{1 + random() % 16};
    line.join(places.at(i), i + 1, bytes);
    without.join(same.at(i), i + 1, bytes);
  };
  for (std::size_t i = 0; i < places.size(); ++i) join(i);
  for (int step = 0; step < 20'000; ++step) {
    FairLine::Place leaves;
    line.join(leaves, 9, {1 + random() % 16});
    const bool at_once = line.first() == &leaves || random() % 2 == 0;
    if (at_once) line.leave(leaves);
    const auto first = static_cast<std::size_t>(line.first() - places.data());
    ASSERT_EQ(without.first(), &same.at(first)) << "step " << step;
    line.serve(places.at(first));
    without.serve(same.at(first));
    if (!at_once) line.leave(leaves);
    join(first);
    ASSERT_EQ(line.waiting().size(), places.size());
  }
}

TEST(FairLine, TimeAwayIsNotSavedUp) {
  FullLine full({all_of(mib(1))});
  FairLine::Place back;
  full.line.join(back, 100, mib(1));
  full.line.serve(back);
  full.serve(1000);
  int in_a_row = 0;
  for (full.line.join(back, 100, mib(1)); full.line.first() == &back && in_a_row < 100;
       ++in_a_row) {
    full.line.serve(back);
    full.line.join(back, 100, mib(1));
  }
  EXPECT_LE(in_a_row, 1);
}

TEST(FairLine, WhatOthersHadBeforeDelaysNobody) {
  FairLine line;
  FairLine::Place large;
  for (int i = 0; i < 1000; ++i) {
    line.join(large, 1, gib(1));
    line.serve(large);
  }
  FairLine::Place small;
  line.join(large, 1, gib(1));
  line.join(small, 2, mib(1));
  EXPECT_EQ(line.first(), &small);
}

TEST(FairLine, BytesNearAllThatCanBeCountedDoNotUpsetTheOrder) {
  FairLine line;
  FairLine::Place huge;
  FairLine::Place half;
  FairLine::Place small;
  for (int i = 0; i < 10'000; ++i) {
    line.join(huge, 1, {UINT64_MAX - 1});
    line.join(half, 2, {UINT64_MAX}, 2);
    line.join(small, 3, mib(1));
    for (auto* place : {&small, &half, &huge}) {
      ASSERT_EQ(line.first(), place) << "round " << i;
      line.serve(*place);
    }
  }
}

TEST(FairLine, BatchesOfNoBytesTakeTurnsByWeight) {
  for (const auto& others : {all_of({}), all_of(mib(10))}) {
    FullLine full({all_of({}, 3), others});
    full.serve(400);
    EXPECT_NEAR(full.slots().front().turns, 300, 3) << "beside " << others.most;
  }
  FullLine empty({all_of({})});
  empty.serve(100);
  EXPECT_LE(empty.served_before(gib(1), 100), 2) << "of no bytes, before one that has some";
}

TEST(FairLine, ALargeBatchIsDueOnceAProducerThatComesBackHadItsChance) {
  FairLine line;
  FairLine::Place small;
  FairLine::Place large;
  const auto serve_small = [&](int batches) {
    for (int i = 0; i < batches; ++i) {
      line.join(small, 1, mib(1));
      line.serve(small);
    }
  };
  serve_small(20);
  line.join(large, 2, mib(10));
  EXPECT_FALSE(line.is_due(large)) << "producer 1 may come back";
  line.join(small, 1, gib(1));
  EXPECT_TRUE(line.is_due(large)) << "it is back, and behind";
  line.leave(small);
  line.give_way(large);
  EXPECT_TRUE(line.is_due(large)) << "it did not";
  serve_small(1);
  EXPECT_FALSE(line.is_due(large)) << "it did";
}

TEST(FairLine, EqualsGiveWayToEachOtherAndNobodyToThoseWhoNeverReturn) {
  FairLine line;
  FairLine::Place place;
  for (std::uint64_t i = 0; i < 40; ++i) {
    line.join(place, 1 + i % 2, mib(1));
    EXPECT_EQ(line.is_due(place), i < 3) << i << ": the other has had two";
    line.serve(place);
  }
  for (std::uint64_t newcomer = 3; newcomer < 100; ++newcomer) {
    line.join(place, newcomer, mib(1));
    line.serve(place);
  }
  line.join(place, 1, mib(10));
  EXPECT_TRUE(line.is_due(place));
}

TEST(FairLine, WhoStaysGivesWayToAsManyNewThreadsAsWaitedAtOneTime) {
  FairLine line;
  FairLine::Place stays;
  std::array<FairLine::Place, 2> fresh;
  std::uint64_t last = 1;
  line.join(stays, 1, mib(1));
  for (FairLine::Place& place : fresh) line.join(place, ++last, mib(1));
  line.serve(stays);  // two others wait
  line.join(stays, 1, mib(1));
  EXPECT_TRUE(line.is_due(stays)) << "both are there";
  for (FairLine::Place& place : fresh) line.serve(place);
  EXPECT_TRUE(line.is_due(stays)) << "both have had their turn";
  line.serve(stays);
  line.join(stays, 1, mib(1));
  EXPECT_FALSE(line.is_due(stays)) << "none has come since";
  line.join(fresh.at(0), ++last, mib(1));
  EXPECT_FALSE(line.is_due(stays)) << "one has";
  line.join(fresh.at(1), ++last, mib(1));
  EXPECT_TRUE(line.is_due(stays)) << "both have";
  for (FairLine::Place& place : fresh) line.serve(place);
  for (int i = 0; i < 15; ++i) {
    line.serve(stays);
    line.join(stays, 1, mib(1));
    EXPECT_FALSE(line.is_due(stays)) << "they may still come";
  }
  line.serve(stays);
  line.join(stays, 1, mib(1));
  EXPECT_TRUE(line.is_due(stays)) << "none has come for 16 turns";
}

TEST(FairLine, WhoHadNoTurnYetWaitsForNobodyHoweverManyCame) {
  FairLine line;
  std::array<FairLine::Place, 20> all;
  for (std::size_t i = 0; i < all.size(); ++i) line.join(all.at(i), 1 + i, mib(1));
  for (std::size_t i = 0; i < all.size() - 1; ++i) line.serve(all.at(i));
  EXPECT_TRUE(line.is_due(all.back()));
}

}  // namespace
}  // namespace weir
