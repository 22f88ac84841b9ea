// Seeded random runs on one thread; pool_random_run.hpp has the model.

#include <gtest/gtest.h>

#include <vector>

#include "allocator/pool_random_run.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

using testing::kAllKinds;
using testing::RandomRun;
using testing::RandomRunOptions;

std::string description(const RandomRunOptions& o) {
  return testing::seed_message(testing::random_seed()) + ", " + std::string(to_string(o.kind)) +
         (o.running_out.hand_over ? ", handover" : "") + (o.running_out.wait ? ", wait" : "") +
         (o.points_are_entries ? ", points are entries" : "") +
         (o.scale != 0 ? ", sizes times 2^" + std::to_string(o.scale) : "");
}

/// Runs all, each with its own seed, until one fails.
void run_each(const std::vector<RandomRunOptions>& all) {
  std::uint64_t seed = testing::random_seed();
  for (RandomRunOptions options : all) {
    SCOPED_TRACE(description(options));
    options.seed = ++seed;
    RandomRun(options).run();
    if (::testing::Test::HasFailure()) return;
  }
}

/// Requests from bytes to megabytes: blocks of both areas, many smaller than a page.
RandomRunOptions large(RandomRunOptions options) {
  constexpr unsigned kScale = 6;
  options.scale = kScale;
  options.budget = options.budget * (std::uint64_t{1} << kScale);
  return options;
}

/// So much memory that blocks are cut from both ends, in one segment.
RandomRunOptions wide(RandomRunOptions options) {
  constexpr unsigned kScale = 12;
  options.scale = kScale;
  options.budget = options.budget * (std::uint64_t{1} << kScale);
  options.segment = PoolOptions::kWholeBudget;
  return options;
}

TEST(Invariant6, ABlockIsNeverInTwoHands) {
  std::vector<RandomRunOptions> all;
  for (const PoolKind kind : kAllKinds) {
    for (const bool hand_over : {true, false}) {
      for (const bool wait : {true, false}) {
        for (const bool entries : {true, false}) {
          all.push_back({.kind = kind,
                         .running_out = {.hand_over = hand_over, .wait = wait},
                         .points_are_entries = entries,
                         .steps = WEIR_TEST_SANITIZED != 0 ? 5'000 : 15'000});
          if (testing::splits_blocks(kind)) all.push_back(large(all.back()));
          if (kind == PoolKind::kBestFit) all.push_back(wide(all.at(all.size() - 2)));
        }
      }
    }
  }
  run_each(all);
}

TEST(Invariant6, TheRandomRunsHavePagesAtTwoPlaces) {
  RandomRunOptions options = large({.kind = PoolKind::kPaged, .steps = 6'000});
  options.seed = testing::random_seed();
  SCOPED_TRACE(description(options));
  RandomRun run(options);
  run.run();
  EXPECT_GT(run.aliases_seen(), 0U) << "so the one above checks those as well";
}

TEST(Invariant1, ReservedNeverExceedsTheBudgetWhateverBreaks) {
  std::vector<RandomRunOptions> all;
  for (const PoolKind kind : kAllKinds) {
    for (const bool entries : {true, false}) {
      all.push_back({.kind = kind,
                     .points_are_entries = entries,
                     .faults = true,
                     .steps = WEIR_TEST_SANITIZED != 0 ? 3'000 : 10'000,
                     .budget = kib(96)});
      if (testing::splits_blocks(kind)) all.push_back(large(all.back()));
    }
  }
  run_each(all);
}

}  // namespace
}  // namespace weir
