#include "tools/replay/measure/recommend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "tools/replay/measure/pools.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::Measured;
using replay::recommend;
using replay::Score;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Score score(std::size_t candidate, double reserved, double driver_calls, double ns) {
  return {.candidate = candidate,
          .reserved = reserved,
          .driver_calls = driver_calls,
          .ns_per_operation = ns};
}

std::vector<std::size_t> chosen(const std::vector<Score>& scores,
                                double same_need = replay::kSameNeed) {
  std::vector<std::size_t> candidates;
  const auto found = recommend(scores, same_need);
  if (!found) return candidates;
  candidates.push_back(found->best.candidate);
  if (found->second) candidates.push_back(found->second->candidate);
  return candidates;
}

TEST(ReplayRecommend, IsTheOneThatReservesLeast) {
  EXPECT_THAT(chosen({score(0, 1.9, 0, 50), score(1, 1.1, 0, 200), score(2, 1.4, 0, 50)}),
              ElementsAre(1, 2));
}

TEST(ReplayRecommend, IsTheQuickestOfThoseThatReserveAboutTheLeast) {
  EXPECT_THAT(chosen({score(0, 1.00, 0, 200), score(1, 1.03, 0, 100), score(2, 1.04, 0, 10)}),
              ElementsAre(1, 0));
}

TEST(ReplayRecommend, DriverCallsCount) {
  // One in 50 operations is 400 ns.
  EXPECT_THAT(chosen({score(0, 1, 0.02, 50), score(1, 1, 0, 300)}), ElementsAre(1, 0));
  EXPECT_THAT(chosen({score(0, 1, 0.02, 50), score(1, 1, 0, 700)}), ElementsAre(0, 1));
}

/// The equal ones behind the best.
std::vector<std::size_t> equals(const std::vector<Score>& scores) {
  std::vector<std::size_t> candidates;
  const auto found = recommend(scores).value();
  for (const Score& other : found.equal) candidates.push_back(other.candidate);
  return candidates;
}

TEST(ReplayRecommend, AtEqualTimeIsTheFirstAndTheOthersAreEqual) {
  const std::vector<Score> scores{score(4, 1.02, 0, 100), score(5, 1, 0, 100), score(6, 1, 0, 100)};
  EXPECT_THAT(chosen(scores), ElementsAre(4));
  EXPECT_THAT(equals(scores), ElementsAre(5, 6));
}

TEST(ReplayRecommend, NoiseOfTimingChoosesNothingAndTheDefaultWins) {
  const auto choose = [](double first, double usual, double other) {
    std::vector<Score> scores{score(0, 1, 0, first), score(1, 1, 0, usual), score(2, 1, 0, 400),
                              score(3, 1, 0, other)};
    for (Score& each : scores) each.by_default = each.candidate == 1;
    EXPECT_THAT(equals(scores), ElementsAre(0, 3));
    return chosen(scores);
  };
  EXPECT_THAT(choose(90, 100, 95), ElementsAre(1, 2));
  EXPECT_THAT(choose(100, 90, 95), ElementsAre(1, 2));
  EXPECT_THAT(choose(100, 115, 95), ElementsAre(1, 2));
}

TEST(ReplayRecommend, NoiseIsInWhatIsTimedAlone) {
  // One driver call in 10 operations is 2000 ns, counted and not timed: 100 ns more are no noise.
  EXPECT_THAT(equals({score(0, 1, 0.1, 100), score(1, 1, 0.105, 100)}), ElementsAre());
  EXPECT_THAT(equals({score(0, 1, 0.1, 100), score(1, 1, 0.1005, 100)}), ElementsAre(1));
}

TEST(ReplayRecommend, KnowsASettingThatIsTheDefault) {
  PoolOptions base;
  const auto usual = [&](const char* text) {
    return replay::parse_pool_choice("--pool", text, base).by_default();
  };
  for (const char* text : {"round", "round:24", "naive", "best_fit", "best_fit:64MiB", "paged"}) {
    EXPECT_TRUE(usual(text)) << text;
  }
  for (const char* text : {"round:26", "naive:1MiB", "best_fit:all"}) {
    EXPECT_FALSE(usual(text)) << text;
  }
  base.page = kib(8);
  EXPECT_FALSE(usual("round"));
  EXPECT_TRUE(usual("paged")) << "which has no such setting";
}

TEST(ReplayRecommend, OnAGivenCapacityIsTheQuickestThatCompletes) {
  EXPECT_THAT(chosen({score(0, 1, 0, 200), score(1, 3, 0, 50)}, replay::kAnyNeed),
              ElementsAre(1, 0));
}

TEST(ReplayRecommend, MayHaveNoSecondAndMayBeNothing) {
  EXPECT_THAT(chosen({score(0, 1, 0, 200)}), ElementsAre(0));
  EXPECT_THAT(chosen({}), ElementsAre());
}

Measured measured(std::uint64_t reserved, std::uint64_t calls, double ns,
                  std::uint64_t operations) {
  Measured figures;
  figures.figures.operations = operations;
  figures.figures.peak_reserved = {reserved};
  figures.figures.driver_calls = calls;
  figures.ns_per_operation = ns;
  return figures;
}

TEST(ReplayRecommend, ScoresAreOfAllTracesTogether) {
  std::vector<replay::TraceResults> results{
      {.peak_requested = {100}, .measured = {measured(150, 10, 100, 1000)}},
      {.peak_requested = {1000}, .measured = {measured(1200, 50, 400, 2000)}}};
  const std::vector<Score> scores = replay::scores_of(results, {true});
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_TRUE(scores[0].by_default);
  EXPECT_DOUBLE_EQ(scores[0].reserved, 1.5);
  EXPECT_DOUBLE_EQ(scores[0].driver_calls, 60.0 / 3000);
  EXPECT_DOUBLE_EQ(scores[0].ns_per_operation, 300);
  EXPECT_DOUBLE_EQ(scores[0].total_ns(), 300 + 0.02 * 20'000);
}

TEST(ReplayRecommend, WhoRanOutOfMemoryOnceHasNoScore) {
  std::vector<replay::TraceResults> results{
      {.peak_requested = {100}, .measured = {measured(150, 1, 1, 10), measured(150, 1, 1, 10)}},
      {.peak_requested = {100}, .measured = {measured(150, 1, 1, 10), measured(150, 1, 1, 10)}}};
  results[1].measured[0].figures.refusal.emplace();
  const std::vector<Score> scores = replay::scores_of(results, {true, false});
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].candidate, 1U);
  EXPECT_FALSE(scores[0].by_default);
}

// The pools by name.

std::vector<std::string> names_of(const char* text, const PoolOptions& base = {}) {
  std::vector<std::string> names;
  for (const auto& choice : replay::parse_pool_choices("--pool", text, base)) {
    names.push_back(choice.name);
  }
  return names;
}

TEST(ReplayPools, AreNamedWithTheSettingThatTellsThemApart) {
  EXPECT_THAT(names_of("round,round:28,naive,naive:512KiB,unpooled"),
              ElementsAre("round:24", "round:28", "naive", "naive:512KiB", "unpooled"));
  EXPECT_THAT(names_of("round:24,round,ROUND:24"), ElementsAre("round:24"));
  EXPECT_THAT(names_of("best_fit,best_fit:64MiB,best_fit:all,best_fit:16MiB"),
              ElementsAre("best_fit", "best_fit:all", "best_fit:16MiB"));
  EXPECT_THAT(names_of("naive:100000001,naive:100000002"),
              ElementsAre("naive:100000001B", "naive:100000002B"))
      << "two pools, however little tells them apart";
}

TEST(ReplayPools, AllIsEveryKindAndTwoSettingsOfRoundAndOfBestFit) {
  const std::vector<std::string> names = names_of("all");
  for (const PoolKind kind : pool_kinds()) {
    const std::string name(to_string(kind));
    EXPECT_THAT(names, ::testing::Contains(kind == PoolKind::kRound ? name + ":24" : name));
  }
  EXPECT_THAT(names, ::testing::Contains("round:28"));
  EXPECT_THAT(names, ::testing::Contains("best_fit:all"));
  EXPECT_EQ(names.size(), pool_kinds().size() + 2);
}

TEST(ReplayPools, KeepTheOtherSettings) {
  PoolOptions base;
  base.cutoff = 26;
  base.page = kib(8);
  EXPECT_THAT(names_of("round,round:24", base), ElementsAre("round:26", "round:24"));
  EXPECT_EQ(replay::parse_pool_choice("--pool", "round:24", base).options.page.value, kib(8));
}

TEST(ReplayPools, ABadNameOrSettingIsRefused) {
  const auto refused = [](const char* text) {
    return message_of<UsageError>([&] { (void)names_of(text); });
  };
  EXPECT_THAT(refused("square"), HasSubstr("--pool='square' is not allowed"));
  EXPECT_THAT(refused("round,"), HasSubstr("--pool='' is not allowed"));
  EXPECT_THAT(refused("round:99"), HasSubstr("--pool='99' is not allowed: a whole number from 20"));
  EXPECT_THAT(refused("naive:0"), HasSubstr("--pool='0' is not allowed"));
  EXPECT_THAT(refused("best_fit:1MiB"), HasSubstr("a size of 2MiB or more, or all"));
  EXPECT_THAT(refused("unpooled:1"), HasSubstr("unpooled takes no setting after a colon"));
}

TEST(ReplayPools, SayTheVariablesThatChooseThem) {
  const auto variables = [](const char* text) {
    return replay::variables_of(replay::parse_pool_choice("--pool", text, {}));
  };
  EXPECT_EQ(variables("round:28"), "WEIR_POOL=round WEIR_POOL_LINEAR_CUTOFF=28");
  EXPECT_EQ(variables("best_fit:all"), "WEIR_POOL=best_fit WEIR_POOL_SEGMENT_SIZE=all");
  EXPECT_EQ(variables("best_fit:268435456"), "WEIR_POOL=best_fit WEIR_POOL_SEGMENT_SIZE=256MiB");
  EXPECT_EQ(variables("best_fit:1.5GiB"), "WEIR_POOL=best_fit WEIR_POOL_SEGMENT_SIZE=1536MiB");
  EXPECT_EQ(variables("naive:1MiB"), "WEIR_POOL=naive WEIR_POOL_LARGE_ROUND_SIZE=1MiB");
  EXPECT_EQ(variables("naive:1000001"), "WEIR_POOL=naive WEIR_POOL_LARGE_ROUND_SIZE=1000001B");
  EXPECT_EQ(variables("unpooled"), "WEIR_POOL=unpooled");
  PoolOptions base;
  base.page = kib(8);
  EXPECT_EQ(replay::variables_of(replay::parse_pool_choice("--pool", "round", base)),
            "WEIR_POOL=round WEIR_POOL_LINEAR_CUTOFF=24 WEIR_POOL_PAGE_SIZE=8KiB");
}

TEST(ReplayPools, WhatIsRecommendedFromKeepsMemory) {
  for (const auto& choice : replay::recommendable_choices({})) {
    EXPECT_NE(choice.options.kind.value, PoolKind::kUnpooled) << choice.name;
  }
}

}  // namespace
}  // namespace weir::testing
