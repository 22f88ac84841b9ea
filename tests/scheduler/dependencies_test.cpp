#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "scheduler/tensor_table.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using testing::random_seed;
using testing::seed_message;

/// All accesses so far, and a search for those that the next one must follow.
class Model {
 public:
  void note(bool write, StreamRole role, std::uint64_t sequence) {
    accesses_.push_back({write, role, sequence});
  }
  [[nodiscard]] Waits before(bool write, StreamRole role) const {
    Waits waits{};
    for (const Access& access : accesses_) {
      if (access.role == role) continue;  // in order anyway
      if (!access.write && !write) continue;
      std::uint64_t& wait = waits.at(index_of(access.role));
      wait = std::max(wait, access.sequence);
    }
    return waits;
  }

 private:
  struct Access {
    bool write;
    StreamRole role;
    std::uint64_t sequence;
  };
  std::vector<Access> accesses_;
};

/// A device of four streams on which a wait also brings what the awaited stream waited for.
class Order {
 public:
  /// Enqueues on `role` behind `waits`. Returns its sequence.
  std::uint64_t enqueue(StreamRole role, const Waits& waits) {
    Waits& known = known_.at(index_of(role));
    for (const StreamRole other : kAllRoles) {
      const std::uint64_t until = waits.at(index_of(other));
      if (until == 0) continue;
      merge(known, snapshots_.at(index_of(other)).at(until - 1));
    }
    auto& log = snapshots_.at(index_of(role));
    known.at(index_of(role)) = log.size() + 1;
    log.push_back(known);
    return log.size();
  }
  /// Whether everything in `waits` precedes the next operation on `role`.
  [[nodiscard]] bool covers(StreamRole role, const Waits& waits) const {
    for (std::size_t i = 0; i < kStreamRoles; ++i) {
      if (known_.at(index_of(role)).at(i) < waits.at(i)) return false;
    }
    return true;
  }

 private:
  static void merge(Waits& into, const Waits& from) {
    for (std::size_t i = 0; i < kStreamRoles; ++i) into.at(i) = std::max(into.at(i), from.at(i));
  }
  std::array<Waits, kStreamRoles> known_{};
  std::array<std::vector<Waits>, kStreamRoles> snapshots_;
};

TEST(Dependencies, AFirstAccessWaitsForNothing) {
  for (const StreamRole role : kAllRoles) {
    Waits waits{};
    wait_to_read({}, role, waits);
    wait_to_write({}, role, waits);
    EXPECT_EQ(waits, Waits{});
  }
}

TEST(Dependencies, EveryPairOfStreamsAndAccesses) {
  for (const StreamRole first : kAllRoles) {
    for (const StreamRole second : kAllRoles) {
      AccessHistory history;
      note_write(history, first, 5);
      Waits to_read{};
      Waits to_write{};
      wait_to_read(history, second, to_read);
      wait_to_write(history, second, to_write);
      EXPECT_EQ(to_read.at(index_of(first)), first == second ? 0U : 5U);
      EXPECT_EQ(to_write, to_read);

      note_read(history, first, 9);
      Waits read_after_read{};
      Waits write_after_read{};
      wait_to_read(history, second, read_after_read);
      wait_to_write(history, second, write_after_read);
      EXPECT_EQ(read_after_read, to_read) << "readers between two writes overlap";
      EXPECT_EQ(write_after_read.at(index_of(first)), first == second ? 0U : 9U);
    }
  }
}

TEST(Dependencies, AWriterWaitsForNoReaderOfAValueThatIsGone) {
  AccessHistory history;
  note_write(history, StreamRole::kCompute, 1);
  note_read(history, StreamRole::kCopyOut, 3);
  note_write(history, StreamRole::kCompute, 2);  // behind the reader
  Waits waits{};
  wait_to_write(history, StreamRole::kCompute2, waits);
  Waits expected{};
  expected.at(index_of(StreamRole::kCompute)) = 2;
  EXPECT_EQ(waits, expected);
}

TEST(Dependencies, VersionsCountWrites) {
  AccessHistory history;
  EXPECT_EQ(history.version, 0U);
  note_write(history, StreamRole::kCompute, 1);
  note_read(history, StreamRole::kCompute, 2);
  note_write(history, StreamRole::kCopyIn, 1);
  EXPECT_EQ(history.version, 2U);
}

TEST(Dependencies, RandomHistoriesAreOrderedAsTheModelDemands) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    constexpr std::size_t kTensors = 3;
    std::array<AccessHistory, kTensors> histories{};
    std::array<Model, kTensors> models{};
    Order order;
    for (int step = 0; step < 60; ++step) {
      const StreamRole role = kAllRoles.at(random() % kStreamRoles);
      std::array<int, kTensors> access{};  // 0 none, 1 read, 2 write, 3 both
      for (int& a : access) a = static_cast<int>(random() % 4);
      Waits waits{};
      for (std::size_t t = 0; t < kTensors; ++t) {
        if ((access.at(t) & 1) != 0) wait_to_read(histories.at(t), role, waits);
        if ((access.at(t) & 2) != 0) wait_to_write(histories.at(t), role, waits);
      }
      EXPECT_EQ(waits.at(index_of(role)), 0U) << "a stream never waits for itself";
      const std::uint64_t sequence = order.enqueue(role, waits);
      for (std::size_t t = 0; t < kTensors; ++t) {
        if (access.at(t) == 0) continue;
        const bool write = (access.at(t) & 2) != 0;
        ASSERT_TRUE(order.covers(role, models.at(t).before(write, role)));
        if ((access.at(t) & 1) != 0) note_read(histories.at(t), role, sequence);
        if (write) note_write(histories.at(t), role, sequence);
        models.at(t).note(write, role, sequence);
      }
    }
  }
}

}  // namespace
}  // namespace weir
