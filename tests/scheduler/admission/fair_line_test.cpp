#include "scheduler/admission/fair_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "support/random_seed.hpp"

namespace weir {
namespace {

using testing::random_seed;
using testing::seed_message;

struct FairLineTest : ::testing::Test {
  /// Runs a batch of a producer that nobody is before, and that holds what was expected.
  void serve_at_once(FairLine::Place& place, std::uint64_t producer, Bytes bytes) {
    line.join(place, producer, bytes);
    line.serve(place);
    line.correct(producer, bytes, bytes);
  }
  void serve_small() { serve_at_once(small, 1, mib(1)); }
  /// How many batches of producer 1 are served, at most 100, before somebody else's is first.
  int served_before_others(Bytes bytes) {
    int before = 0;
    for (line.join(a, 1, bytes); line.is_first(a) && before < 100; line.join(a, 1, bytes)) {
      line.serve(a);
      line.correct(1, bytes, bytes);
      ++before;
    }
    return before;
  }

  FairLine line;
  FairLine::Place a;
  FairLine::Place b;
  FairLine::Place c;
  FairLine::Place small;
  FairLine::Place large;
};

/// Producers that always have their next batch in line.
class Busy {
 public:
  void producer(std::uint64_t id, Bytes batch, std::uint32_t weight = 1) {
    sizes_[id] = batch;
    line_.join(places_[id], id, batch, weight);
  }
  /// Serves the first producer, who lines up again. Returns the producer.
  std::uint64_t serve() {
    for (auto& [id, place] : places_) {
      if (!line_.is_first(place)) continue;
      line_.serve(place);
      line_.correct(id, sizes_[id], sizes_[id]);
      served_[id] += sizes_[id];
      line_.join(place, id, sizes_[id], place.weight);
      return id;
    }
    ADD_FAILURE() << "somebody waits and nobody is first";
    return 0;
  }
  [[nodiscard]] Bytes served(std::uint64_t id) { return served_[id]; }

 private:
  FairLine line_;
  std::map<std::uint64_t, Bytes> sizes_;
  std::map<std::uint64_t, FairLine::Place> places_;
  std::map<std::uint64_t, Bytes> served_;
};

TEST_F(FairLineTest, ServesOneProducerInTheOrderOfArrival) {
  std::array<FairLine::Place, 3> places;
  for (auto& place : places) line.join(place, 1, mib(1));
  for (auto& place : places) {
    EXPECT_TRUE(line.is_first(place));
    line.serve(place);
  }
  EXPECT_EQ(line.size(), 0U);
}

TEST(FairLine, AWeightCountsAlsoBeyondTheBytesOfABatch) {
  for (const Bytes& bytes : {Bytes{7}, kib(4)}) {
    Busy busy;
    busy.producer(1, bytes, 2'000'000);
    busy.producer(2, bytes, 1'000'000);
    for (int i = 0; i < 3000; ++i) busy.serve();
    EXPECT_NEAR(static_cast<double>(busy.served(1).count),
                2 * static_cast<double>(busy.served(2).count),
                3 * static_cast<double>(bytes.count));
  }
}

TEST_F(FairLineTest, NobodyYieldsToAProducerThatIsInTheLineItself) {
  serve_at_once(large, 2, mib(10));
  line.join(large, 2, mib(10));
  for (int i = 0; i < 2; ++i) serve_small();  // the second time it is back soon
  ASSERT_TRUE(line.yields(large));
  line.join(small, 1, mib(1));
  EXPECT_FALSE(line.yields(large)) << "it waits as well, and was passed over";
}

TEST_F(FairLineTest, KeepsTheTurnOfAProducerThatWasBackSoonTheLastTime) {
  serve_at_once(large, 2, mib(10));
  line.join(large, 2, mib(10));
  serve_small();
  EXPECT_FALSE(line.yields(large)) << "nothing is known of how long it stays away";
  serve_small();
  EXPECT_TRUE(line.yields(large));
  line.serve(large);
  line.correct(2, mib(10), mib(10));
  line.join(large, 2, mib(10));
  EXPECT_FALSE(line.yields(large)) << "it did not come back";
}

TEST_F(FairLineTest, KeepsTheTurnAlsoOfOneThatIsAwayWhenItsEndIsReached) {
  serve_at_once(large, 2, mib(10));
  for (int i = 0; i < 10; ++i) serve_small();  // ends where the large one does
  line.join(large, 2, mib(10));
  ASSERT_FALSE(line.yields(large)) << "they had the same";
  line.serve(large);
  line.correct(2, mib(10), mib(10));
  serve_small();
  line.join(large, 2, mib(10));
  EXPECT_TRUE(line.yields(large)) << "it was back soon each time, and has had less";
}

TEST_F(FairLineTest, ATurnThatIdledTheDeviceIsKeptAgainOnlyAfterMoreAndMoreReturns) {
  serve_at_once(large, 2, gib(1));
  line.join(large, 2, gib(1));
  serve_small();
  std::vector<int> returns;
  for (int late = 0; late < 8; ++late) {
    int needed = 0;
    while (!line.yields(large) && needed < 100) {
      serve_small();
      ++needed;
    }
    returns.push_back(needed);
    line.note_late(1);
  }
  EXPECT_EQ(returns, (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 64}));
}

TEST_F(FairLineTest, PassesOverThoseThatMayNotGo) {
  std::array<FairLine::Place, 3> places;
  for (std::size_t i = 0; i < places.size(); ++i) line.join(places.at(i), i + 1, mib(1));
  EXPECT_EQ(line.first([](const FairLine::Place& place) { return place.producer > 1; }),
            &places[1]);
  EXPECT_EQ(line.first([](const FairLine::Place&) { return false; }), nullptr);
}

// Start-time fair queueing: the shares of two producers differ by at most one batch of each, and
// those of many by two of the largest.
TEST(FairLine, BytesAreSharedByWeightWhateverTheSizes) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    Busy busy;
    const std::uint64_t producers = round % 2 == 0 ? 2 : 6;
    double most = 0;
    std::map<std::uint64_t, std::pair<double, double>> each;  // weight, size over weight
    for (std::uint64_t id = 1; id <= producers; ++id) {
      const Bytes size{1 + random() % 4096};
      const auto weight = static_cast<std::uint32_t>(1 + random() % 3);
      each[id] = {weight, static_cast<double>(size.count) / weight};
      most = std::max(most, each[id].second);
      busy.producer(id, size, weight);
    }
    for (int i = 0; i < 20'000; ++i) busy.serve();
    const auto share = [&](std::uint64_t id) {
      return static_cast<double>(busy.served(id).count) / each[id].first;
    };
    for (std::uint64_t one = 1; one <= producers; ++one) {
      for (std::uint64_t two = 1; two < one; ++two) {
        EXPECT_NEAR(share(one), share(two),
                    producers == 2 ? each[one].second + each[two].second : 2 * most)
            << one << " against " << two;
      }
    }
  }
}

TEST_F(FairLineTest, ANewcomerIsNotMadeToWaitForWhatOthersHadBefore) {
  for (int i = 0; i < 1000; ++i) {
    line.join(c, 1, gib(1));
    line.serve(c);
  }
  line.join(a, 1, gib(1));
  line.join(b, 2, mib(1));
  EXPECT_TRUE(line.is_first(b));
}

TEST_F(FairLineTest, ANewcomerTakesTurnsWithBatchesOfNoBytes) {
  serve_at_once(a, 1, {});
  line.join(b, 2, gib(1));
  EXPECT_LE(served_before_others({}), 2);
}

/// One producer that stays, beside some that are replaced after a few batches each.
class BesideNewcomers {
 public:
  struct Slot {
    std::uint32_t weight = 1;
    std::uint64_t smallest = 1;  ///< batch of its producers, in bytes
    std::uint64_t largest = 1;
    int batches = 1;   ///< of each producer
    double share = 0;  ///< bytes over the weight, served so far
  };
  /// The first slot's producer stays.
  BesideNewcomers(std::vector<Slot> slots, std::uint64_t seed)
      : random_(seed), slots_(std::move(slots)), standing_(slots_.size()) {
    for (std::size_t i = 0; i < slots_.size(); ++i) join(i);
  }

  void run(int batches) {
    for (int i = 0; i < batches; ++i) {
      const auto next = std::ranges::find_if(
          standing_, [this](const Standing& standing) { return line_.is_first(standing.place); });
      ASSERT_NE(next, standing_.end()) << "somebody waits and nobody is first";
      const auto slot = static_cast<std::size_t>(next - standing_.begin());
      line_.serve(next->place);
      line_.correct(next->place.producer, next->place.bytes, next->place.bytes);
      slots_[slot].share += static_cast<double>(next->place.bytes.count) / slots_[slot].weight;
      join(slot);
      most_accounts_ = std::max(most_accounts_, line_.accounts());
    }
  }
  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }
  [[nodiscard]] std::size_t most_accounts() const { return most_accounts_; }

 private:
  struct Standing {
    std::uint64_t producer = 0;
    Bytes size{};  ///< of its batches
    int left = 0;  ///< batches
    FairLine::Place place;
  };

  void join(std::size_t index) {
    const Slot& slot = slots_[index];
    Standing& standing = standing_[index];
    if (standing.producer == 0 || (index != 0 && standing.left == 0)) {
      standing.producer = ++producers_;
      standing.size = Bytes{slot.smallest + random_() % (slot.largest - slot.smallest + 1)};
      standing.left = slot.batches;
    }
    --standing.left;
    line_.join(standing.place, standing.producer, standing.size, slot.weight);
  }

  FairLine line_;
  std::mt19937_64 random_;
  std::vector<Slot> slots_;
  std::deque<Standing> standing_;
  std::uint64_t producers_ = 0;
  std::size_t most_accounts_ = 0;
};

// The model is a device that works for all who stand in the line at once, as fast as their weights
// say. A line of whole batches may differ from it by some batches, however long it runs.
TEST(FairLine, WhoStaysGetsItsShareBesideThoseWhoAreReplaced) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<BesideNewcomers::Slot> slots(2 + random() % 5);
    // Newcomers take turns by their arrival, so they get the same only if their shares are equal.
    const bool are_equal = round % 2 == 0;
    const std::uint64_t share = 1 + random() % 4096;
    double most = 0;
    for (auto& slot : slots) {
      slot.weight = static_cast<std::uint32_t>(1 + random() % 3);
      slot.batches = static_cast<int>(1 + random() % 3);
      slot.largest = 1 + random() % (random() % 2 == 0 ? 4096 : 16);
      if (are_equal && &slot != &slots.front()) {
        slot.smallest = slot.largest = share * slot.weight;
      }
      most = std::max(most, static_cast<double>(slot.largest) / slot.weight);
    }
    BesideNewcomers beside(slots, random());
    beside.run(5000);
    const double stays = beside.slots().front().share;
    for (const auto& slot : beside.slots()) {
      EXPECT_LE(slot.share, stays + 3 * most) << "round " << round;
      const double least = are_equal ? stays - 3 * most : 0;
      EXPECT_GE(slot.share, least) << "round " << round;
    }
  }
}

TEST(FairLine, RemembersNobodyForLongWhoDoesNotComeBack) {
  BesideNewcomers alone({{}, {.largest = 64}}, random_seed());
  alone.run(10'000);
  EXPECT_LE(alone.most_accounts(), 16U) << "of thousands of producers";
}

TEST_F(FairLineTest, ANewcomerWaitsForNoMoreOfOthersThanItsOwnBatch) {
  for (int i = 0; i < 3; ++i) serve_at_once(a, 1, mib(1));
  line.join(b, 2, mib(3));
  EXPECT_EQ(served_before_others(mib(1)), 2) << "it has had one since the virtual time";
}

TEST_F(FairLineTest, NobodyYieldsToAProducerThatHasEnded) {
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  serve_at_once(large, 2, mib(10));
  line.join(large, 2, mib(10));
  for (int i = 0; i < 2; ++i) {
    line.join(small, {1, ended}, mib(1));
    line.serve(small);
    line.correct(1, mib(1), mib(1));
  }
  ASSERT_TRUE(line.yields(large));
  const std::uint64_t weights = line.weights();
  *ended = true;
  EXPECT_FALSE(line.yields(large));
  EXPECT_EQ(line.weights(), weights - 1);
}

TEST_F(FairLineTest, ForgetsAProducerThatHasEndedOnceItsBatchIsClosed) {
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  for (int i = 0; i < 2; ++i) {
    line.join(a, {1, ended}, mib(1));
    line.serve(a);
  }
  *ended = true;
  const auto accounts_after = [&](Bytes held) {
    line.correct(1, mib(1), held);
    serve_at_once(b, 2, kib(1));
    return line.accounts();
  };
  EXPECT_EQ(accounts_after(mib(1)), 2U) << "another of its batches is open";
  EXPECT_EQ(accounts_after(gib(1)), 1U) << "what it has had counts against nobody any more";
}

TEST_F(FairLineTest, TimeAwayIsNotSavedUp) {
  line.join(b, 2, mib(1));
  line.serve(b);
  for (int i = 0; i < 1000; ++i) {  // producer 2 is away meanwhile
    line.join(a, 1, mib(1));
    line.serve(a);
  }
  // When it is back, it gets its turn, and then producer 1 has one too: no thousand batches in a
  // row.
  int in_a_row = 0;
  line.join(a, 1, mib(1));
  line.join(b, 2, mib(1));
  while (line.is_first(b)) {
    line.serve(b);
    line.join(b, 2, mib(1));
    ++in_a_row;
  }
  EXPECT_LE(in_a_row, 2);
}

TEST_F(FairLineTest, LeavingCountsNothingAndTheNextIsFirst) {
  line.join(a, 1, gib(4));
  line.join(b, 2, mib(1));
  EXPECT_TRUE(line.is_first(a));
  line.leave(a);
  EXPECT_TRUE(line.is_first(b));
  line.join(c, 1, mib(1));
  line.serve(b);
  EXPECT_TRUE(line.is_first(c));
  line.join(a, 2, mib(1));
  EXPECT_TRUE(line.is_first(c)) << "what producer 1 left without was counted against it";
}

TEST_F(FairLineTest, AnEstimateBeyondAllBoundsDoesNotUpsetTheOrder) {
  line.join(a, 1, {UINT64_MAX});
  line.serve(a);
  line.join(b, 2, mib(1));
  line.serve(b);
  line.join(a, 1, mib(1));
  line.join(b, 2, mib(1));
  EXPECT_TRUE(line.is_first(b)) << "the producer that had all the bytes there are is served first";
}

TEST_F(FairLineTest, WhatABatchTurnedOutToHoldCounts) {
  const auto serve_both = [&](Bytes held_by_a) {
    line.join(a, 1, mib(8));
    line.join(b, 2, mib(8));
    line.serve(a);
    line.serve(b);
    line.correct(1, mib(8), held_by_a);
    line.correct(2, mib(8), mib(8));
    line.join(b, 2, mib(8));
    line.join(a, 1, mib(8));
  };
  serve_both(mib(1));
  EXPECT_TRUE(line.is_first(a)) << "it had less than the other";
  line.leave(a);
  line.leave(b);
  serve_both(mib(32));
  EXPECT_TRUE(line.is_first(b)) << "it had more than the other";
}

TEST_F(FairLineTest, ABatchYieldsToAProducerThatIsStillSubmittingAndHasHadLess) {
  serve_at_once(large, 1, mib(10));
  line.join(small, 2, mib(1));
  line.join(large, 1, mib(10));
  EXPECT_FALSE(line.yields(small));
  EXPECT_FALSE(line.yields(large)) << "who waits is before it in the line anyway";
  line.serve(small);
  EXPECT_TRUE(line.is_first(large));
  EXPECT_TRUE(line.yields(large));
  line.correct(2, mib(1), mib(1));
  EXPECT_FALSE(line.yields(large)) << "it may be gone for good";
}

TEST_F(FairLineTest, NoTurnIsKeptForAProducerThatIsFarBehind) {
  line.join(a, 1, mib(1));
  line.serve(a);
  int yielded = 0;
  for (int i = 0; i < 100; ++i) {
    line.join(b, 2, mib(2));
    if (line.yields(b)) ++yielded;
    line.serve(b);
    line.correct(2, mib(2), mib(2));
  }
  EXPECT_EQ(yielded, 1);
}

TEST(FairLine, BatchesOfNoBytesTakeTurnsByWeight) {
  Busy busy;
  busy.producer(1, {}, 3);
  busy.producer(2, {});
  std::array<int, 3> turns{};
  for (int i = 0; i < 400; ++i) ++turns.at(busy.serve());
  EXPECT_NEAR(turns[1], 300, 2);
}

}  // namespace
}  // namespace weir
