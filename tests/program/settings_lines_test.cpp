// The settings that a program prints before it begins.

#include "tools/program/settings_lines.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/table_checks.hpp"

namespace weir {
namespace {

using weir::testing::widest_line;

const std::vector<SettingLine> kSettings{{"device", "cpu", "default", "no GPU"},
                                         {"budget", "96MiB", "--budget"},
                                         {"log", "", "default"}};

TEST(SettingsLines, AreOneLineWhereThereIsRoom) {
  EXPECT_EQ(
      settings_lines(kSettings, 100),
      "settings: device=cpu (default, no GPU), budget=96MiB (--budget), log=none (default)\n");
  EXPECT_EQ(settings_lines({}, 100), "settings:\n");
}

TEST(SettingsLines, BreakBetweenSettings) {
  EXPECT_EQ(settings_lines(kSettings, 45),
            "settings: device=cpu (default, no GPU),\n"
            "  budget=96MiB (--budget), log=none (default)\n");
}

TEST(SettingsLines, ASettingThatIsLongerThanALineIsBrokenItself) {
  const std::vector<SettingLine> lines{{"device", "cpu", "default", "there is no driver here"},
                                       {"log", "", "default"}};
  EXPECT_EQ(settings_lines(lines, 30),
            "settings: device=cpu (default,\n  there is no driver here),\n  log=none (default)\n");
}

TEST(SettingsLines, FitWhateverTheWidthIs) {
  for (std::size_t most = 30; most <= 110; ++most) {
    EXPECT_LE(widest_line(settings_lines(kSettings, most)), most);
  }
}

}  // namespace
}  // namespace weir
