#include "allocator/base/variables.hpp"

#include <gtest/gtest.h>

namespace weir::testing {
namespace {

using Lines = std::vector<const char*>;

TEST(Variables, AnUnknownOneIsNamedWithTheNearestThatExists) {
  const Lines lines{"WEIR_BUGET=1GiB", "WEIR_POLICE=barrier", "WEIR_POOL_PAGESIZE=4096", nullptr};
  EXPECT_EQ(unknown_variables(lines.data()),
            (std::vector<std::string>{
                "WEIR_BUGET is set but is not a variable of Weir: the nearest is WEIR_BUDGET",
                "WEIR_POLICE is set but is not a variable of Weir: the nearest is WEIR_POLICY",
                "WEIR_POOL_PAGESIZE is set but is not a variable of Weir: the nearest is "
                "WEIR_POOL_PAGE_SIZE"}));
}

TEST(Variables, ThoseOfWeirAndOfOthersAreNone) {
  Lines lines{"PATH=/bin", "WEIRD=1", "WEIR=1", "", "WEIR_STANDIN_DEVICES=2"};
  std::vector<std::string> texts;
  for (const std::string_view name : known_variables()) texts.push_back(std::string(name) + "=x");
  for (const std::string& text : texts) lines.push_back(text.c_str());
  lines.push_back(nullptr);
  EXPECT_EQ(unknown_variables(lines.data()), std::vector<std::string>{});
}

}  // namespace
}  // namespace weir::testing
