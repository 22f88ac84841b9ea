// Seeded random runs, one thread: pool_random_run.hpp has the model.

#include <gtest/gtest.h>

#include "allocator/pool_random_run.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using testing::kAllKinds;
using testing::RandomRun;
using testing::RandomRunOptions;

std::string description(const RandomRunOptions& o) {
  return testing::seed_message(testing::random_seed()) + ", " + std::string(to_string(o.kind)) +
         (o.running_out.hand_over ? ", handover" : "") + (o.running_out.wait ? ", wait" : "") +
         (o.points_are_entries ? ", points are entries" : "");
}

TEST(Invariant6, ABlockIsNeverInTwoHands) {
  RandomRunOptions options{.seed = testing::random_seed(), .steps = 20'000};
  for (const PoolKind kind : kAllKinds) {
    for (const bool hand_over : {true, false}) {
      for (const bool wait : {true, false}) {
        for (const bool entries : {true, false}) {
          options.kind = kind;
          options.running_out = {.hand_over = hand_over, .wait = wait};
          options.points_are_entries = entries;
          ++options.seed;
          SCOPED_TRACE(description(options));
          RandomRun(options).run();
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Invariant1, ReservedNeverExceedsTheBudgetWhateverBreaks) {
  RandomRunOptions options{
      .faults = true, .seed = testing::random_seed(), .steps = 10'000, .budget = kib(96)};
  for (const PoolKind kind : kAllKinds) {
    for (const bool entries : {true, false}) {
      options.kind = kind;
      options.points_are_entries = entries;
      ++options.seed;
      SCOPED_TRACE(description(options));
      RandomRun(options).run();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace weir
