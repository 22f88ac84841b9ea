// The stress benchmarks' patterns: they are complete, keep their size, and match their description.

#include "bench/stress/patterns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "stress/print.hpp"

namespace weir::bench {
namespace {

using replay::Action;
using replay::Operation;
using replay::Trace;

constexpr PatternOptions kSmall{.most = kLeastPattern, .seed = 1};

std::vector<Bytes> sizes_of(const Trace& trace) {
  std::vector<Bytes> sizes;
  for (const Operation& operation : trace.operations) {
    if (operation.action == Action::kAllocate) sizes.push_back(operation.bytes);
  }
  return sizes;
}

/// Whether every buffer is allocated once, then used while it lives, then freed once.
::testing::AssertionResult is_whole(const Trace& trace) {
  enum class State : std::uint8_t { kUnborn, kLive, kFreed };
  std::vector<State> states(trace.buffers, State::kUnborn);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const Operation& operation = trace.operations[i];
    State& state = states.at(operation.buffer);
    const State wanted = operation.action == Action::kAllocate ? State::kUnborn : State::kLive;
    if (state != wanted || operation.stream >= trace.streams) {
      return ::testing::AssertionFailure() << "operation " << i;
    }
    if (operation.action == Action::kAllocate) state = State::kLive;
    if (operation.action == Action::kFree) state = State::kFreed;
  }
  if (std::ranges::count(states, State::kFreed) != std::ptrdiff_t{trace.buffers}) {
    return ::testing::AssertionFailure() << "something stays live";
  }
  return ::testing::AssertionSuccess();
}

class EveryPattern : public ::testing::TestWithParam<Pattern> {};

TEST_P(EveryPattern, IsWholeAndComesNearItsSizeAndNeverAbove) {
  for (const Bytes most : {kLeastPattern, gib(1)}) {
    const Trace trace = GetParam().make({.most = most, .seed = 7});
    EXPECT_EQ(trace.name, GetParam().name);
    EXPECT_TRUE(is_whole(trace));
    EXPECT_LE(peak_requested(trace), most);
    EXPECT_GE(peak_requested(trace).count, most.count / 10 * 8) << format_bytes(most);
  }
}

TEST_P(EveryPattern, IsTheSameForTheSameSeed) {
  EXPECT_EQ(GetParam().make(kSmall).operations, GetParam().make(kSmall).operations);
}

std::string name_of(const ::testing::TestParamInfo<Pattern>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Patterns, EveryPattern, ::testing::ValuesIn(patterns()), name_of);

TEST(Pattern, DrawnFromAnotherSeedIsAnother) {
  const PatternOptions other{.most = kSmall.most, .seed = 2};
  for (const char* name :
       {"random", "sawtooth", "streams", "varying steps", "against round", "against naive"}) {
    EXPECT_NE(pattern(name, kSmall).operations, pattern(name, other).operations) << name;
  }
}

TEST(Pattern, FixedStepsRepeatTheirSizesAndVaryingOnesDoNot) {
  const auto distinct = [](const Trace& trace) {
    const std::vector<Bytes> sizes = sizes_of(trace);
    return std::set<Bytes>(sizes.begin(), sizes.end()).size();
  };
  EXPECT_LE(distinct(pattern("fixed steps", kSmall)), 8U);
  EXPECT_GE(distinct(pattern("varying steps", kSmall)), 50U);
}

TEST(Pattern, CombLeavesEverySecondBlockBetweenHolesThatAreTooSmall) {
  const Trace trace = pattern("comb", kSmall);
  const Bytes tooth{kSmall.most.count / 256};
  std::set<std::uint32_t> live;
  for (const Operation& operation : trace.operations) {
    if (operation.bytes != tooth) break;  // the next row begins
    if (operation.action == Action::kAllocate) {
      live.insert(operation.buffer);
    } else {
      live.erase(operation.buffer);
    }
  }
  EXPECT_EQ(live.size(), 128U);
  EXPECT_TRUE(std::ranges::all_of(live, [](std::uint32_t buffer) { return buffer % 2 == 1; }));
  const std::vector<Bytes> sizes = sizes_of(trace);
  EXPECT_EQ(*std::ranges::find_if(sizes, [&](Bytes bytes) { return bytes != tooth; }), tooth * 2);
}

TEST(Pattern, AgainstRoundIsAByteAboveItsClasses) {
  for (const Bytes bytes : sizes_of(pattern("against round", {.most = gib(1), .seed = 1}))) {
    const std::uint64_t below = bytes.count - 1;
    EXPECT_TRUE(std::has_single_bit(below) || below % mib(16).count == 0) << bytes.count;
  }
}

TEST(Pattern, AgainstNaiveIsAByteAboveItsMultiples) {
  for (const Bytes bytes : sizes_of(pattern("against naive", kSmall))) {
    EXPECT_EQ(bytes.count % mib(2).count, 1U);
  }
}

TEST(Pattern, AgainstBestFitAsksForMoreThanAnyHoleWhileSmallBlocksStay) {
  const Trace trace = pattern("against best_fit", kSmall);
  // In each round large and small blocks alternate, then all large ones are freed: between two
  // holes a small one stays.
  Bytes hole;
  int rounds = 0;
  std::size_t i = 0;
  while (trace.operations[i].action == Action::kAllocate) {
    const Bytes block = trace.operations[i].bytes;
    const std::uint32_t first = trace.operations[i].buffer;
    EXPECT_GT(block, hole);
    hole = block;
    for (; trace.operations[i].action == Action::kAllocate; ++i) {
      const bool is_block = (trace.operations[i].buffer - first) % 2 == 0;
      EXPECT_EQ(trace.operations[i].bytes, is_block ? block : Bytes{block.count / 16});
    }
    for (; i < trace.operations.size() && trace.operations[i].bytes == block; ++i) {
      EXPECT_EQ(trace.operations[i].action, Action::kFree);
    }
    ++rounds;
  }
  EXPECT_EQ(rounds, 5);
}

TEST(Pattern, AgainstPagedLeavesOneBlockInEachPage) {
  const Trace trace = pattern("against paged", kSmall);
  std::set<std::uint32_t> live;
  std::size_t i = 0;
  for (; trace.operations[i].action == Action::kAllocate; ++i)
    live.insert(trace.operations[i].buffer);
  const std::size_t filled = live.size();
  EXPECT_EQ(filled * kib(256).count, kSmall.most.count);
  for (; trace.operations[i].action == Action::kFree; ++i) live.erase(trace.operations[i].buffer);
  EXPECT_EQ(live.size() * mib(2).count, kSmall.most.count);
  EXPECT_TRUE(std::ranges::all_of(live, [](std::uint32_t buffer) { return buffer % 8 == 0; }));
  EXPECT_GT(trace.operations[i].bytes, mib(2) - kib(256));
}

TEST(Pattern, StreamsUsesAndFreesOnOthersToo) {
  const Trace trace = pattern("streams", kSmall);
  EXPECT_EQ(trace.streams, 4U);
  std::map<std::uint32_t, std::uint32_t> home;
  int uses = 0;
  int elsewhere = 0;
  for (const Operation& operation : trace.operations) {
    if (operation.action == Action::kAllocate) home[operation.buffer] = operation.stream;
    if (operation.action == Action::kUse && operation.stream != home[operation.buffer]) ++uses;
    if (operation.action == Action::kFree && operation.stream != home[operation.buffer])
      ++elsewhere;
  }
  EXPECT_GT(uses, 500);
  EXPECT_GT(elsewhere, 500);
}

TEST(Pattern, OfThreadsHasAStreamAndAShareForEach) {
  const std::vector<Trace> traces = thread_patterns(kSmall, 3);
  ASSERT_EQ(traces.size(), 3U);
  for (std::uint32_t i = 0; i < traces.size(); ++i) {
    EXPECT_TRUE(is_whole(traces[i]));
    EXPECT_LE(peak_requested(traces[i]).count, kSmall.most.count / 3);
    EXPECT_TRUE(std::ranges::all_of(
        traces[i].operations, [i](const Operation& operation) { return operation.stream == i; }));
  }
  EXPECT_NE(sizes_of(traces[0]), sizes_of(traces[1]));
}

}  // namespace
}  // namespace weir::bench
