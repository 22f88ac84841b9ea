// Whether the check of a failure recognizes a clean one, and its results for our pools.

#include "bench/stress/running_out.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "bench/stress/patterns.hpp"
#include "stress/fakes.hpp"
#include "stress/print.hpp"
#include "tools/replay/measure/pools.hpp"

namespace weir::bench {
namespace {

using ::testing::HasSubstr;
using weir::testing::CountingSubject;
using weir::testing::Wrong;

constexpr PatternOptions kScarce{.most = kLeastPattern, .seed = 3};

replay::MakeSubject counting(Wrong wrong) {
  return [wrong](Bytes capacity) { return std::make_unique<CountingSubject>(capacity, wrong); };
}

TEST(RunningOut, CompletesWithEnough) {
  const RunningOut result =
      run_out(random_pattern(kScarce), counting(Wrong::kNothing), kScarce.most);
  EXPECT_EQ(result.ending, Ending::kCompleted);
  EXPECT_EQ(result.refused_at, 0U);
}

TEST(RunningOut, IsCleanWhereNothingIsWrong) {
  const RunningOut result =
      run_out(random_pattern(kScarce), counting(Wrong::kNothing), {kScarce.most.count / 2});
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
        run_out(comb_pattern(kScarce), counting(wrong), {kScarce.most.count / 2});
    EXPECT_EQ(result.ending, Ending::kUnclean) << text;
    EXPECT_THAT(result.wrong, HasSubstr(text));
  }
}

TEST(RunningOut, TellsWhoCannotBegin) {
  const RunningOut result =
      run_out(comb_pattern(kScarce), counting(Wrong::kCannotBegin), kScarce.most);
  EXPECT_EQ(result.ending, Ending::kCannotBegin);
  EXPECT_EQ(result.refused_at, 1U);
}

class RunningOutOfPool : public ::testing::TestWithParam<Pattern> {};

TEST_P(RunningOutOfPool, IsCleanOnEveryPool) {
  const replay::Trace trace = GetParam().make(kScarce);
  PoolOptions base;
  base.budget = {{.percent = 100}, "test"};
  for (const replay::PoolChoice& choice : replay::parse_pool_choices("--pool", "all", base)) {
    const replay::Candidate pool = replay::candidate_of(
        choice, [](Bytes capacity) { return std::make_unique<SimulatedUpstream>(capacity); }, 0);
    const RunningOut result = run_out(trace, pool.make, {kScarce.most.count / 10 * 7});
    EXPECT_EQ(result.ending, Ending::kClean) << choice.name << ": " << result.wrong;
    EXPECT_NE(run_out(trace, pool.make, kScarce.most * 64).ending, Ending::kUnclean) << choice.name;
  }
}

std::string name_of_pattern(const ::testing::TestParamInfo<Pattern>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Patterns, RunningOutOfPool, ::testing::ValuesIn(patterns()),
                         name_of_pattern);

}  // namespace
}  // namespace weir::bench
