// Whether the check of a failure recognizes a clean one, and its results for our pools.

#include "bench/stress/running_out.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "bench/stress/patterns.hpp"
#include "stress/print.hpp"
#include "tools/replay/measure/pools.hpp"

namespace weir::bench {
namespace {

using ::testing::HasSubstr;

enum class Wrong : std::uint8_t {
  kNothing,
  kCountsARefusal,     ///< what it refused stays in its accounting
  kRefusesFromThenOn,  ///< a refusal is its last word
  kKeepsHalf,          ///< half of the freed memory stays allocated
  kChangesItsMind,     ///< serves a refused request at the second try
  kCannotBegin,        ///< refuses everything
  kNeverGivesBack,     ///< freed memory serves only requests of the same size or less
};

/// A subject that counts, and makes one mistake on demand. Not thread-safe.
class CountingSubject final : public replay::Subject {
 public:
  CountingSubject(Bytes capacity, Wrong wrong) : capacity_(capacity), wrong_(wrong) {}

  [[nodiscard]] void* allocate(Bytes bytes, StreamId /*stream*/) override {
    const bool fits = bytes <= minus_or_zero(capacity_, allocated_);
    const bool asked_again = wrong_ == Wrong::kChangesItsMind && bytes == refused_;
    const bool serves = (fits || asked_again) &&
                        !(wrong_ == Wrong::kRefusesFromThenOn && refused_.count != 0) &&
                        !(wrong_ == Wrong::kNeverGivesBack && freed_ && bytes > kMostAfterFree);
    if (!serves || wrong_ == Wrong::kCannotBegin) {
      refused_ = bytes;
      if (wrong_ == Wrong::kCountsARefusal) allocated_ += {1};
      return nullptr;
    }
    allocated_ += bytes;
    next_ += bytes.count;
    return reinterpret_cast<void*>(next_);
  }
  void deallocate(void* /*pointer*/, Bytes bytes, StreamId /*stream*/) override {
    allocated_ -= wrong_ == Wrong::kKeepsHalf ? Bytes{bytes.count / 2} : bytes;
    freed_ = refused_.count != 0;
  }
  void record_use(void* /*pointer*/, StreamId /*stream*/) override {}
  [[nodiscard]] replay::Footprint footprint() const override {
    return {.allocated = allocated_, .reserved = capacity_ * 2, .largest_free = {}};
  }

 private:
  static constexpr Bytes kMostAfterFree = kib(128);

  const Bytes capacity_;
  const Wrong wrong_;
  Bytes allocated_;
  Bytes refused_;
  bool freed_ = false;  ///< something was freed after a refusal
  std::uint64_t next_ = std::uint64_t{1} << 40U;
};

constexpr PatternOptions kScarce{.most = kLeastPattern, .seed = 3};
constexpr PatternOptions kShared{.most = kLeastPattern, .seed = 5};

std::vector<replay::Candidate> all_pools() {
  PoolOptions base;
  base.budget = {{.percent = 100}, "test"};
  std::vector<replay::Candidate> pools;
  for (const replay::PoolChoice& choice : replay::parse_pool_choices("--pool", "all", base)) {
    pools.push_back(replay::candidate_of(
        choice, [](Bytes capacity) { return std::make_unique<SimulatedUpstream>(capacity); }, 0));
  }
  return pools;
}

replay::MakeSubject counting(Wrong wrong) {
  return [wrong](Bytes capacity) { return std::make_unique<CountingSubject>(capacity, wrong); };
}

TEST(RunningOut, CompletesWithEnough) {
  const RunningOut result =
      run_out(pattern("random", kScarce), counting(Wrong::kNothing), kScarce.most);
  EXPECT_EQ(result.ending, Ending::kCompleted);
  EXPECT_EQ(result.refused_at, 0U);
}

TEST(RunningOut, IsCleanWhereNothingIsWrong) {
  const RunningOut result =
      run_out(pattern("random", kScarce), counting(Wrong::kNothing), {kScarce.most.count / 2});
  EXPECT_EQ(result.ending, Ending::kClean) << result.wrong;
  EXPECT_GT(result.refused_at, 0U);
}

TEST(RunningOut, FindsEachWrong) {
  const std::vector<std::pair<Wrong, std::string>> wrongs{
      {Wrong::kCountsARefusal, "a refusal changes what is allocated"},
      {Wrong::kRefusesFromThenOn, "no smaller request is served"},
      {Wrong::kKeepsHalf, "nothing is live, and"},
      {Wrong::kChangesItsMind, "served when it is asked for again"},
      {Wrong::kNeverGivesBack, "once all is freed"}};
  for (const auto& [wrong, text] : wrongs) {
    // The teeth of a comb leave no time for a free before the refusal.
    const RunningOut result =
        run_out(pattern("comb", kScarce), counting(wrong), {kScarce.most.count / 2});
    EXPECT_EQ(result.ending, Ending::kUnclean) << text;
    EXPECT_THAT(result.wrong, HasSubstr(text));
  }
}

TEST(RunningOut, TellsWhoCannotBegin) {
  const RunningOut result =
      run_out(pattern("comb", kScarce), counting(Wrong::kCannotBegin), kScarce.most);
  EXPECT_EQ(result.ending, Ending::kCannotBegin);
  EXPECT_EQ(result.refused_at, 1U);
}

class RunningOutOfPool : public ::testing::TestWithParam<Pattern> {};

TEST_P(RunningOutOfPool, IsCleanOnEveryPool) {
  const replay::Trace trace = GetParam().make(kScarce);
  for (const replay::Candidate& pool : all_pools()) {
    const RunningOut result = run_out(trace, pool.make, {kScarce.most.count / 10 * 7});
    EXPECT_EQ(result.ending, Ending::kClean) << pool.name << ": " << result.wrong;
    EXPECT_NE(run_out(trace, pool.make, kScarce.most * 64).ending, Ending::kUnclean) << pool.name;
  }
}

std::string name_of_pattern(const ::testing::TestParamInfo<Pattern>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Patterns, RunningOutOfPool, ::testing::ValuesIn(patterns()),
                         name_of_pattern);

TEST(StressThreads, AreServedWhereThereIsRoomForAll) {
  const std::vector<replay::Trace> traces = thread_patterns(kShared, 3);
  for (const replay::Candidate& pool : all_pools()) {
    const auto subject = pool.make(gib(64));
    const ThreadsFigures figures = replay_threads(traces, *subject);
    EXPECT_EQ(figures.refused, 0U) << pool.name;
    EXPECT_LE(figures.peak_requested, kShared.most);
    EXPECT_GE(figures.peak_requested.count, kShared.most.count / 4);
    EXPECT_EQ(subject->footprint().allocated, Bytes{}) << pool.name;
  }
}

TEST(StressThreads, LeaveTheStatisticsInOrderWhereThereIsNot) {
  const std::vector<replay::Trace> traces = thread_patterns(kShared, 3);
  for (const replay::Candidate& pool : all_pools()) {
    const RunningOut result = run_out_threads(traces, pool.make, {kShared.most.count / 4});
    EXPECT_EQ(result.ending, Ending::kClean) << pool.name << ": " << result.wrong;
    EXPECT_GT(result.refused_at, 0U);
  }
}

}  // namespace
}  // namespace weir::bench
