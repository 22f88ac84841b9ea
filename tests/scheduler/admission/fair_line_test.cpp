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

/// Runs a batch of a producer that nobody is before, and that holds what was expected.
void serve_at_once(FairLine& line, FairLine::Place& place, std::uint64_t producer, Bytes bytes) {
  line.join(place, producer, bytes);
  line.serve(place);
  line.correct(producer, bytes, bytes);
}

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

TEST(FairLine, ServesOneProducerInTheOrderOfArrival) {
  FairLine line;
  std::array<FairLine::Place, 3> places;
  for (auto& place : places) line.join(place, 1, mib(1));
  for (auto& place : places) {
    EXPECT_TRUE(line.is_first(place));
    line.serve(place);
  }
  EXPECT_EQ(line.size(), 0U);
}

TEST(FairLine, LargeAndSmallBatchesGetTheSameBytes) {
  Busy busy;
  busy.producer(1, mib(64));
  busy.producer(2, mib(1));
  for (int i = 0; i < 65 * 20; ++i) busy.serve();
  // Start-time fair queueing: shares differ by at most one batch of each.
  const auto large = static_cast<double>(busy.served(1).count);
  const auto small = static_cast<double>(busy.served(2).count);
  EXPECT_NEAR(large, small, static_cast<double>((mib(64) + mib(1)).count));
}

TEST(FairLine, AProducerGetsBytesByItsWeight) {
  Busy busy;
  busy.producer(1, mib(64), 3);
  busy.producer(2, mib(1), 1);
  for (int i = 0; i < (3 + 64) * 20; ++i) busy.serve();
  EXPECT_NEAR(static_cast<double>(busy.served(1).count),
              3 * static_cast<double>(busy.served(2).count), static_cast<double>(mib(67).count));
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

TEST(FairLine, NobodyYieldsToAProducerThatIsInTheLineItself) {
  FairLine line;
  FairLine::Place small;
  FairLine::Place large;
  for (int i = 0; i < 2; ++i) {  // the second time it is back soon
    line.join(small, 1, mib(1));
    line.serve(small);
    line.correct(1, mib(1), mib(1));
  }
  line.join(large, 2, mib(10));
  line.serve(large);
  line.correct(2, mib(10), kib(1100));  // ends a little behind the small one
  line.join(large, 2, mib(10));
  line.join(small, 1, mib(1));
  EXPECT_FALSE(line.yields(large)) << "it waits as well, and was passed over";
}

TEST(FairLine, KeepsTheTurnOfAProducerThatWasBackSoonTheLastTime) {
  FairLine line;
  FairLine::Place small;
  FairLine::Place large;
  const auto serve_small = [&] { serve_at_once(line, small, 1, mib(1)); };
  serve_at_once(line, large, 2, mib(10));
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

TEST(FairLine, KeepsTheTurnAlsoOfOneThatIsAwayWhenItsEndIsReached) {
  FairLine line;
  FairLine::Place small;
  FairLine::Place large;
  serve_at_once(line, large, 2, mib(10));
  for (int i = 0; i < 10; ++i)
    serve_at_once(line, small, 1, mib(1));  // ends where the large one does
  line.join(large, 2, mib(10));
  ASSERT_FALSE(line.yields(large)) << "they had the same";
  line.serve(large);
  line.correct(2, mib(10), mib(10));
  serve_at_once(line, small, 1, mib(1));
  line.join(large, 2, mib(10));
  EXPECT_TRUE(line.yields(large)) << "it was back soon each time, and has had less";
}

TEST(FairLine, ATurnThatIdledTheDeviceIsKeptAgainOnlyAfterMoreAndMoreReturns) {
  FairLine line;
  FairLine::Place small;
  FairLine::Place large;
  const auto serve_small = [&] { serve_at_once(line, small, 1, mib(1)); };
  serve_at_once(line, large, 2, gib(1));
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

TEST(FairLine, PassesOverThoseThatMayNotGo) {
  FairLine line;
  std::array<FairLine::Place, 3> places;
  for (std::size_t i = 0; i < places.size(); ++i) line.join(places.at(i), i + 1, mib(1));
  EXPECT_EQ(line.first([](const FairLine::Place& place) { return place.producer > 1; }),
            &places[1]);
  EXPECT_EQ(line.first([](const FairLine::Place&) { return false; }), nullptr);
}

TEST(FairLine, NobodyStarvesWhateverTheSizes) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    Busy busy;
    constexpr std::uint64_t kProducers = 6;
    Bytes largest;
    for (std::uint64_t id = 1; id <= kProducers; ++id) {
      const Bytes size{1 + random() % 4096};
      largest = std::max(largest, size);
      busy.producer(id, size);
    }
    for (int i = 0; i < 20'000; ++i) busy.serve();
    for (std::uint64_t a = 1; a <= kProducers; ++a) {
      for (std::uint64_t b = 1; b <= kProducers; ++b) {
        EXPECT_LE(busy.served(a), busy.served(b) + largest * 2) << a << " against " << b;
      }
    }
  }
}

TEST(FairLine, ANewcomerIsNotMadeToWaitForWhatOthersHadBefore) {
  FairLine line;
  FairLine::Place place;
  for (int i = 0; i < 1000; ++i) {
    line.join(place, 1, gib(1));
    line.serve(place);
  }
  FairLine::Place old;
  FairLine::Place fresh;
  line.join(old, 1, gib(1));
  line.join(fresh, 2, mib(1));
  EXPECT_TRUE(line.is_first(fresh));
}

TEST(FairLine, ANewcomerTakesTurnsWithBatchesOfNoBytes) {
  FairLine line;
  FairLine::Place old;
  FairLine::Place fresh;
  serve_at_once(line, old, 1, {});
  line.join(fresh, 2, gib(1));
  int before = 0;
  for (line.join(old, 1, {}); line.is_first(old) && before < 100; line.join(old, 1, {})) {
    line.serve(old);
    line.correct(1, {}, {});
    ++before;
  }
  EXPECT_LE(before, 2);
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

TEST(FairLine, ANewcomerWaitsForNoMoreOfOthersThanItsOwnBatch) {
  FairLine line;
  FairLine::Place old;
  FairLine::Place fresh;
  for (int i = 0; i < 3; ++i) serve_at_once(line, old, 1, mib(1));
  line.join(fresh, 2, mib(3));
  int before = 0;
  for (line.join(old, 1, mib(1)); line.is_first(old); line.join(old, 1, mib(1))) {
    line.serve(old);
    line.correct(1, mib(1), mib(1));
    ++before;
  }
  EXPECT_EQ(before, 2) << "it has had one since the virtual time";
}

TEST(FairLine, NobodyYieldsToAProducerThatHasEnded) {
  FairLine line;
  FairLine::Place small;
  FairLine::Place large;
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  const auto serve_small = [&](Bytes held) {
    line.join(small, {1, ended}, mib(1));
    line.serve(small);
    line.correct(1, mib(1), held);
  };
  serve_at_once(line, large, 2, mib(10));
  line.join(large, 2, mib(10));
  for (int i = 0; i < 2; ++i) serve_small(mib(1));
  ASSERT_TRUE(line.yields(large));
  const std::uint64_t weights = line.weights();
  *ended = true;
  EXPECT_FALSE(line.yields(large));
  EXPECT_EQ(line.weights(), weights - 1);
}

TEST(FairLine, ForgetsAProducerThatHasEndedOnceItsBatchIsClosed) {
  FairLine line;
  FairLine::Place moved;
  FairLine::Place other;
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  for (int i = 0; i < 2; ++i) {
    line.join(moved, {1, ended}, mib(1));
    line.serve(moved);
  }
  *ended = true;
  const auto accounts_after = [&](Bytes held) {
    line.correct(1, mib(1), held);
    serve_at_once(line, other, 2, kib(1));
    return line.accounts();
  };
  EXPECT_EQ(accounts_after(mib(1)), 2U) << "another of its batches is open";
  EXPECT_EQ(accounts_after(gib(1)), 1U) << "what it has had counts against nobody any more";
}

TEST(FairLine, TimeAwayIsNotSavedUp) {
  FairLine line;
  FairLine::Place a;
  FairLine::Place b;
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

TEST(FairLine, LeavingCountsNothingAndTheNextIsFirst) {
  FairLine line;
  FairLine::Place a;
  FairLine::Place b;
  FairLine::Place c;
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

TEST(FairLine, AnEstimateBeyondAllBoundsDoesNotUpsetTheOrder) {
  FairLine line;
  FairLine::Place a;
  FairLine::Place b;
  line.join(a, 1, {UINT64_MAX});
  line.serve(a);
  line.join(b, 2, mib(1));
  line.serve(b);
  line.join(a, 1, mib(1));
  line.join(b, 2, mib(1));
  EXPECT_TRUE(line.is_first(b)) << "the producer that had all the bytes there are is served first";
}

TEST(FairLine, WhatABatchTurnedOutToHoldCounts) {
  FairLine line;
  FairLine::Place a;
  FairLine::Place b;
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

TEST(FairLine, ABatchYieldsToAProducerThatIsStillSubmittingAndHasHadLess) {
  FairLine line;
  FairLine::Place large;
  FairLine::Place small;
  line.join(large, 1, mib(10));
  line.serve(large);
  line.correct(1, mib(10), mib(10));
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

TEST(FairLine, NoTurnIsKeptForAProducerThatIsFarBehind) {
  FairLine line;
  FairLine::Place slow;
  FairLine::Place fast;
  line.join(slow, 1, mib(1));
  line.serve(slow);
  int yielded = 0;
  for (int i = 0; i < 100; ++i) {
    line.join(fast, 2, mib(2));
    if (line.yields(fast)) ++yielded;
    line.serve(fast);
    line.correct(2, mib(2), mib(2));
  }
  EXPECT_EQ(yielded, 1);
}

TEST(FairLine, BatchesOfNoBytesTakeTurnsToo) {
  Busy busy;
  busy.producer(1, {});
  busy.producer(2, {});
  std::array<int, 3> turns{};
  for (int i = 0; i < 100; ++i) ++turns.at(busy.serve());
  EXPECT_EQ(turns[1], 50);
  EXPECT_EQ(turns[2], 50);
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
