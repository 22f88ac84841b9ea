#include "trainer/ranks/agree.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

using Fields = std::vector<AgreedField>;

TEST(Agree, SaysNothingOfEqualRanks) {
  const Fields fields{{"--seed", "1"}, {"--batch-size", "128"}};
  EXPECT_EQ(describe_difference({fields}), "");
  EXPECT_EQ(describe_difference({fields, fields, fields}), "");
}

TEST(Agree, NamesTheFirstFieldThatDiffersAndWhoHasWhat) {
  EXPECT_EQ(describe_difference({{{"--seed", "1"}, {"--batch-size", "128"}},
                                 {{"--seed", "1"}, {"--batch-size", "64"}},
                                 {{"--seed", "1"}, {"--batch-size", "128"}},
                                 {{"--seed", "1"}, {"--batch-size", "32"}}}),
            "the ranks differ in --batch-size: ranks 0, 2 have '128'; rank 1 has '64'; rank 3 has "
            "'32'");
}

TEST(Agree, NamesAFieldThatOneRankLacks) {
  EXPECT_EQ(describe_difference({{{"--seed", "1"}}, {}}),
            "the ranks differ in --seed: rank 0 has '1'; rank 1 has none");
  EXPECT_EQ(describe_difference({{}, {{"--seed", "1"}}}),
            "the ranks differ in --seed: rank 0 has none; rank 1 has '1'");
}

}  // namespace
}  // namespace weir
