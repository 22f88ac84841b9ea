#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tools/program/command_line/command_text.hpp"

namespace weir::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

enum class Fruit { kApple, kPear, kPlum };
std::string_view to_string(Fruit fruit) {
  return fruit == Fruit::kApple ? "apple" : fruit == Fruit::kPear ? "pear" : "plum";
}

TEST(CommandLineValue, TellsNamesFromKinds) {
  const Value value("auto|N|TIME|off");
  EXPECT_THAT(value.names(), ElementsAre("auto", "off"));
  EXPECT_THAT(value.kinds(), ElementsAre("N", "TIME"));
  EXPECT_FALSE(value.is_file());
}

TEST(CommandLineValue, KnowsFilesAndFolders) {
  EXPECT_TRUE(Value("none|FILE").is_file());
  EXPECT_TRUE(Value("DIR").is_folder());
  EXPECT_THAT(Value("FILE").names(), IsEmpty());
}

TEST(CommandLineValue, OffersNoNameWithAPlaceholderInIt) {
  EXPECT_THAT(Value("cpu|cuda|cuda:N").names(), ElementsAre("cpu", "cuda"));
  EXPECT_THAT(Value("all|POOL,...", {"round", "naive"}).names(),
              ElementsAre("all", "round", "naive"));
}

TEST(CommandLineValue, TakesTheNamesOfAnEnumeration) {
  const Value value = Value::one_of(names_to(Fruit::kPlum));
  EXPECT_EQ(value.text(), "apple|pear|plum");
  EXPECT_THAT(value.names(), ElementsAre("apple", "pear", "plum"));
}

TEST(CommandLineValue, RefusesKindsThatHelpCannotExplain) {
  EXPECT_THROW((void)Value("BYTE"), std::logic_error);
  EXPECT_THROW((void)Value("a||b"), std::logic_error);
}

}  // namespace
}  // namespace weir::testing
